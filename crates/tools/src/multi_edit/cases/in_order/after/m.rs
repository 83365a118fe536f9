fn main() {
	let b = 2;
	println!("{b}");
}
