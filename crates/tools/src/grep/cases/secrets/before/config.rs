const KEY: u8 = 0;
