/// What the identifiers in requests must look like.
enum Identifiers {
    /// 8-4-4-4-12 hexadecimal digits. Capitals are taken too; the answer repeats what was sent.
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

    /// Whole bytes in hexadecimal, of whatever length: Apple promises none.
    static func isDeviceToken(_ text: Substring) -> Bool {
        !text.isEmpty && text.utf8.count.isMultiple(of: 2) && text.utf8.allSatisfy(isHexadecimal)
    }

    /// The token to which `carillon apns check` sends its one push: the text "carillon apns check is no device". It is never
    /// entered into the book of devices.
    static let nobody = "636172696c6c6f6e2061706e7320636865636b206973206e6f20646576696365"

    /// Letters, digits, hyphens and dots, none of the dots at an end.
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
