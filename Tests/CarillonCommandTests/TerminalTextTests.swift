import Testing

@testable import CarillonCommand

struct TerminalTextTests {
    @Test(arguments: [
        ("Grüße, 👨‍👩‍👧 und می‌خواهم", "Grüße, 👨‍👩‍👧 und می‌خواهم"),
        ("one\nmessage  id  two\r\tthree", #"one\nmessage  id  two\r\tthree"#),
        ("\u{1b}[2J\u{7}\u{0}\u{9b}A\u{7f}", #"\u{1b}[2J\u{7}\u{0}\u{9b}A\u{7f}"#),
        ("a\u{202e}b\u{2066}c\u{2069}\u{2028}d\u{200f}", #"a\u{202e}b\u{2066}c\u{2069}\u{2028}d\u{200f}"#),
        (#"C:\new"#, #"C:\\new"#), ("\r\n", #"\r\n"#),
    ])
    func `nothing forges a line or steers the terminal, and everything can be read`(text: String, escaped: String) {
        #expect(text.escapingControls == escaped)
        #expect(!text.escapingControls.contains { $0.isNewline })
    }
}
