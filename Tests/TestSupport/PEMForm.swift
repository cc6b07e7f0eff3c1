#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A form in which a PEM file occurs: the strict form as tools, editors and environment variables change it.
package struct PEMForm: Sendable, CustomStringConvertible {
    package let description: String
    /// Makes the form of one or more blocks in the strict form.
    private let make: @Sendable (String) -> String
    private var encoding = Encoding.utf8

    private enum Encoding { case utf8, utf16Little, utf16Big }

    package func text(of pem: String) -> String { make(pem) }

    package func bytes(of pem: String) -> [UInt8] {
        let text = make(pem)
        switch encoding {
        case .utf8: return Array(text.utf8)
        case .utf16Little: return ([0xFEFF] + Array(text.utf16)).flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
        case .utf16Big: return ([0xFEFF] + Array(text.utf16)).flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
        }
    }

    package init(_ description: String, _ make: @escaping @Sendable (String) -> String) {
        self.description = description
        self.make = make
    }

    package static let all: [PEMForm] = texts + [utf16(.utf16Little), utf16(.utf16Big)]

    /// The forms that a text has.
    package static let texts: [PEMForm] = [
        PEMForm("strict") { $0 },
        PEMForm("with a byte-order mark") { "\u{FEFF}" + $0 },
        PEMForm("with CRLF") { lines($0).joined(separator: "\r\n") + "\r\n" },
        PEMForm("with CR") { lines($0).joined(separator: "\r") },
        PEMForm("with base64 on one line") { wrapped($0, at: .max) },
        PEMForm("at 76 columns") { wrapped($0, at: 76) },
        PEMForm("at 5 columns") { wrapped($0, at: 5) },
        PEMForm("indented") { lines($0).map { "\t    " + $0 }.joined(separator: "\n") },
        PEMForm("with blanks at line ends") { lines($0).map { $0 + " \t " }.joined(separator: "\n") },
        PEMForm("with empty lines") { lines($0).joined(separator: "\n\n") },
        PEMForm("after text") { "Bag Attributes\n    friendlyName: push - 1\nKey Attributes: <No Attributes>\n" + $0 },
        PEMForm("before text") { $0 + "\nThe end.\n" },
        PEMForm("with written line breaks") { lines($0).joined(separator: "\\n") + "\\n" },
        PEMForm("with written CRLF") { lines($0).joined(separator: "\\r\\n") },
        PEMForm("with line breaks that are escaped twice") { lines($0).joined(separator: "\\\\n") },
        PEMForm("as a JSON text") { "\"" + lines($0).joined(separator: "\\n") + "\"" },
        PEMForm("as a JSON text of JSONEncoder") { encoded($0) },
        PEMForm("as a JSON text with numbers for signs") {
            encoded($0).replacing("+", with: "\\u002B").replacing("\\/", with: "\\u002F").replacing("=", with: "\\u003d")
        },
        PEMForm("as a member of a JSON object") { "{\"key\":\(encoded($0))}" },
        PEMForm("with a commented-out block") { commentedOut + $0 },
        PEMForm("after text that names BEGIN") {
            "They have \"-----BEGIN \" and a label: -----BEGIN CERTIFICATE-----, or -----BEGIN PUBLIC KEY-----.\n" + $0
        },
        PEMForm("after a block with another label") { otherKind + $0 },
        PEMForm("on one line with blanks") { lines($0).joined(separator: " ") },
        PEMForm("on one line") { lines($0).joined() },
        PEMForm("after EC PARAMETERS") { curve + $0 },
        PEMForm("after EC PARAMETERS, on one line") { lines(curve + $0).joined(separator: " ") },
    ]

    /// With white space after the sign, and without.
    private static let commentedOut = ["CERTIFICATE", "PRIVATE KEY", "PUBLIC KEY"]
        .map { label in
            let block = ["-----BEGIN \(label)-----", "MIHs", "-----END \(label)-----"]
            return block.map { "# \($0)\n" }.joined() + block.map { "  ;\($0)\n" }.joined()
        }
        .joined()

    private static let otherKind =
        "-----BEGIN OpenVPN Static key V1-----\n6acef03f62675b4b\n-----END OpenVPN Static key V1-----\n"

    private static func encoded(_ text: String) -> String {
        do {
            return String(decoding: try JSONEncoder().encode(text), as: UTF8.self)
        } catch {
            preconditionFailure("A text cannot be encoded as JSON: \(error)")
        }
    }

    private static let curve = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"

    private static func utf16(_ encoding: Encoding) -> PEMForm {
        var form = PEMForm("in UTF-16, \(encoding)") { $0 }
        form.encoding = encoding
        return form
    }

    private static func lines(_ pem: String) -> [String] { pem.split(separator: "\n").map { String($0) } }

    /// The blocks with another number of characters of base64 a line.
    private static func wrapped(_ pem: String, at columns: Int) -> String {
        var output: [String] = []
        var base64 = ""
        for line in lines(pem) {
            guard line.hasPrefix("-----") || line.contains(":") else {
                base64 += line
                continue
            }
            while !base64.isEmpty {
                output.append(String(base64.prefix(columns)))
                base64 = String(base64.dropFirst(columns))
            }
            output.append(line)
        }
        return output.joined(separator: "\n") + "\n"
    }
}
