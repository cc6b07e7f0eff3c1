import Logging
import Testing

@testable import CarillonCommand

struct TerminalTextTests {
    @Test(arguments: [
        ("Grüße, 👨‍👩‍👧 und می‌خواهم", "Grüße, 👨‍👩‍👧 und می‌خواهم"),
        ("one\nmessage  id  two\r\tthree", #"one\nmessage  id  two\r\tthree"#),
        ("\u{1b}[2J\u{7}\u{0}\u{9b}A\u{7f}", #"\u001b[2J\u0007\u0000\u009bA\u007f"#),
        ("a\u{202e}b\u{2066}c\u{2069}\u{2028}d\u{200f}\u{61c}", #"a\u202eb\u2066c\u2069\u2028d\u200f\u061c"#),
        ("\r\n", #"\r\n"#),
    ])
    func `nothing forges a line or steers the terminal, and everything can be read`(text: String, escaped: String) {
        #expect(text.escapedForTerminal() == escaped)
        #expect(!text.escapedForTerminal().contains { $0.isNewline })
        #expect(escaped.escapedForTerminal() == escaped)
    }

    @Test func `each scalar of the list is escaped, and no other one`() {
        for value in 0...0x2FFF as ClosedRange<UInt32> {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let isListed =
                scalar.properties.generalCategory == .control || [0x61C, 0x200E, 0x200F].contains(value)
                || (0x2028...0x202E).contains(value) || (0x2066...0x2069).contains(value)
            let text = String(Character(scalar))
            #expect((text.escapedForTerminal() != text) == isListed, "U+\(String(value, radix: 16))")
        }
    }

    @Test func `JSON of several lines stays the same JSON`() {
        let json = "{\n\t\"a\":\r\n \"x\u{9b}\u{2028}\u{7f}\"}"
        #expect(json.escapedForTerminal(keepsLines: true) == "{\n \"a\": \n \"x\\u009b\\u2028\\u007f\"}")
    }

    @Test func `an event of the log is one line, for any values`() {
        #expect(
            CommandLog.line("2026 info carillon: user=R\u{9b}32m\u{202e}\n2026 error carillon: forged [x] text\r\n")
                == #"2026 info carillon: user=R\u009b32m\u202e\n2026 error carillon: forged [x] text\r"# + "\n")
        #expect(CommandLog.line("2026 info carillon: serving\n") == "2026 info carillon: serving\n")
        #expect(CommandLog.handler("x") is StreamLogHandler)
    }
}
