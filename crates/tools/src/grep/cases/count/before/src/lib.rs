pub fn farewell() {}
