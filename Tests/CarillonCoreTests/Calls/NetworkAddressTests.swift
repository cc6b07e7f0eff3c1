import CarillonCore
import Testing

struct NetworkAddressTests {
    @Test(arguments: [
        ("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "0.0.0.0"), ("255.255.255.255", "255.255.255.255"),
        ("::", "0:0:0:0:0:0:0:0"), ("::1", "0:0:0:0:0:0:0:1"), ("1::", "1:0:0:0:0:0:0:0"),
        ("2001:DB8::a:b", "2001:db8:0:0:0:0:a:b"), ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"),
        ("::ffff:127.0.0.1", "0:0:0:0:0:ffff:7f00:1"), ("64:ff9b::10.0.0.1", "64:ff9b:0:0:0:0:a00:1"),
        ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"),
    ])
    func `an address is read in each of its written forms`(text: String, meaning: String) {
        #expect(NetworkAddress(text)?.description == meaning)
    }

    @Test(arguments: [
        "", "1", "1.2.3", "1.2.3.4.5", "256.1.1.1", "01.2.3.4", "1.2.3.04", "0x7f.0.0.1", "0177.0.0.1", "2130706433",
        "+1.2.3.4",
        "1.2.3.", ".1.2.3", "１.2.3.4", ":", ":::", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3", "::12345", "g::1",
        "fe80::1%eth0", "[::1]", "1.2.3.4::", "::1.2.3", "::01.2.3.4", "1:2:3:4:5:6:7:1.2.3.4", " ::1", "1:2:3:4:5:6:7:8::",
    ])
    func `a text that is not an address, or that programs read differently, is refused`(text: String) {
        #expect(NetworkAddress(text) == nil)
    }

    @Test(arguments: [
        "8.8.8.8", "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
        "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.167.255.255", "192.169.0.0",
        "198.17.255.255", "198.20.0.0", "223.255.255.255", "2606:4700:4700::1111", "2a00:1450:4001:82a::200e",
        "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1", "2001:4860:4860::8888", "2001:200::1", "2003::1",
    ])
    func `the Internet's addresses are public, up to the edges of the blocks between them`(text: String) throws {
        #expect(try #require(NetworkAddress(text)).isPublic)
    }

    @Test(arguments: [
        "0.0.0.0", "0.255.255.255", "10.0.0.0", "10.255.255.255", "100.64.0.0", "100.127.255.255", "127.0.0.1",
        "127.255.255.255", "169.254.0.0", "169.254.169.254", "172.16.0.0", "172.31.255.255", "192.0.0.8", "192.0.2.1",
        "192.88.99.1", "192.168.0.0", "192.168.255.255", "198.18.0.0", "198.19.255.255", "198.51.100.7", "203.0.113.9",
        "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
        "::", "::1", "::127.0.0.1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:10.1.2.3", "::ffff:0.0.0.0",
        "0:0:0:0:0:ffff:a9fe:a9fe", "::ffff:0:8.8.8.8", "64:ff9b::127.0.0.1", "64:ff9b::c0a8:1", "64:ff9b:1::8.8.8.8",
        "2002:7f00:1::", "2002:a00:1::1", "2002:c0a8:101::", "2002:a9fe:a9fe::", "100::1", "2001::1", "2001:0:4136:e378::1",
        "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1", "3fff::1", "3fff:fff:ffff::1", "5f00::1", "4000::1",
        "fc00::1", "fdff:ffff::1", "fe80::1", "febf::1", "fec0::1", "ff02::1", "ffff::1",
    ])
    func `loopback, private, local, reserved and carried addresses are not`(text: String) throws {
        let address = try #require(NetworkAddress(text))
        #expect(!address.isPublic)
        #expect(!CallRules().allows(address))
        #expect(CallRules(allowsPrivate: true).allows(address))
    }

    @Test func `bytes are read as they travel, and only 4 or 16 of them`() {
        #expect(NetworkAddress(bytes: [127, 0, 0, 1])?.description == "127.0.0.1")
        #expect(NetworkAddress(bytes: Array(repeating: 0, count: 15) + [1])?.bytes.last == 1)
        for count in [0, 3, 5, 15, 17] { #expect(NetworkAddress(bytes: Array(repeating: 1, count: count)) == nil) }
    }
}
