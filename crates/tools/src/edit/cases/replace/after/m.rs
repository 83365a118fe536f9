fn main() {
	let a = 2;
	println!("{a}");
}
