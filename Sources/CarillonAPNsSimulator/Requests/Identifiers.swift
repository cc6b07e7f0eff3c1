/// The valid forms of the identifiers in requests.
enum Identifiers {
    /// Whether the text has the form 8-4-4-4-12 of hexadecimal digits. Capitals are valid too; the response repeats the
    /// received text.
    static func isUUID(_ text: String) -> Bool {
        var index = 0
        for byte in text.utf8 {
            switch index {
            case 8, 13, 18, 23: guard byte == UInt8(ascii: "-") else { return false }
            default: guard isHexadecimal(byte) else { return false }
            }
            index += 1
        }
        return index == 36
    }

    /// Whether the text is whole bytes in hexadecimal. Any length is valid, because Apple does not specify one.
    static func isDeviceToken(_ text: Substring) -> Bool {
        !text.isEmpty && text.utf8.count.isMultiple(of: 2) && text.utf8.allSatisfy(isHexadecimal)
    }

    /// The token of the one push that `carillon apns check` sends: the text "carillon apns check is no device". It is never
    /// added to the book of devices.
    static let nobody = "636172696c6c6f6e2061706e7320636865636b206973206e6f20646576696365"

    /// Whether the text has only letters, digits, hyphens and dots, with no dot at an end.
    static func isTopic(_ text: String) -> Bool {
        guard (1...255).contains(text.utf8.count), !text.hasPrefix("."), !text.hasSuffix(".") else { return false }
        return text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"):
                true
            default: false
            }
        }
    }

    static func isChannelID(_ text: String) -> Bool {
        guard !text.isEmpty, text.utf8.count.isMultiple(of: 4) else { return false }
        let body = text.drop { $0 != "=" }.count
        guard body <= 2 else { return false }
        return text.utf8.dropLast(body).allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"):
                true
            default: false
            }
        }
    }

    private static func isHexadecimal(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
            UInt8(ascii: "A")...UInt8(ascii: "F"):
            true
        default: false
        }
    }
}
