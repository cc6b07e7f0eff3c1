import Testing

@testable import CarillonServer

struct FieldNameTests {
    @Test(arguments: ["ttl", "TTL", "Ttl"])
    func `a field has one name, in letters of any size`(name: String) { #expect(name.isField("ttl")) }

    @Test(arguments: [
        ("tt", "ttl"), ("ttls", "ttl"), ("", "ttl"), ("t4l", "ttl"), ("t\u{14}l", "t4l"), ("crypto\rkey", "crypto-key"),
    ])
    func `names that differ in more than case are different`(name: String, field: String) {
        switch field {
        case "ttl": #expect(!name.isField("ttl"))
        case "t4l": #expect(!name.isField("t4l"))
        default: #expect(!name.isField("crypto-key"))
        }
    }
}
