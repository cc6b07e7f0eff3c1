import NIOHTTP1

/// The header fields that determine the framing of a request, collected in one pass.
struct RequestFraming {
    var codings: [String] = []
    var length: String?
    var hosts = 0
    var asksToUpgrade = false
    var hasExpectation = false

    init(_ headers: HTTPHeaders) {
        for (name, value) in headers {
            switch name.utf8.count {
            case 4 where name.isField("host"): hosts += 1
            case 6 where name.isField("expect"): hasExpectation = true
            case 7 where name.isField("upgrade"): asksToUpgrade = true
            case 14 where name.isField("content-length"): length = length ?? value
            case 17 where name.isField("transfer-encoding"): codings.append(value)
            default: break
            }
        }
    }
}
