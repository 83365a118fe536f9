var x interface{}
