struct A {
    // first
    field: u8,
}
