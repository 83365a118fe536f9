//! Which addresses are on the open internet.
#![allow(clippy::unwrap_used, reason = "a failed expectation is how tests fail")]

use gripper_permissions::web::{Reach, reach};
use rstest::rstest;

#[rstest]
#[case::this_machine(false, &["127.0.0.1", "127.9.9.9", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1"])]
#[case::networks(false, &["10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "fd00::1", "fe80::1"])]
#[case::clouds(false, &["169.254.169.254", "fd00:ec2::254"])]
#[case::others(false, &["224.0.0.1", "255.255.255.255", "198.18.0.1", "2002:7f00:1::", "64:ff9b::7f00:1", "2001:db8::1", "2001::1", "ff02::1"])]
#[case::open(true, &["1.1.1.1", "172.32.0.1", "100.128.0.1", "192.0.1.1", "2606:4700::1111", "2001:4860:4860::8888"])]
fn addresses_are_public_or_not(#[case] public: bool, #[case] addresses: &[&str]) {
    for address in addresses {
        assert_eq!(reach(address.parse().unwrap()) == Reach::Public, public, "{address}");
    }
}
