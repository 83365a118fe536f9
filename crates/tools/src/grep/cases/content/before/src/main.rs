fn main() {
    greet("world");
}

fn greet(name: &str) {
    println!("hello {name}");
}
