import CarillonBasics
import Testing

struct StringCutTests {
    @Test(arguments: [
        ("", 4, ""), ("abcd", 4, "abcd"), ("abcde", 4, "abcd"), ("ääa", 4, "ää"), ("aää", 4, "aä"), ("€€", 4, "€"),
        ("a👍🏽", 8, "a"), ("a👍🏽", 9, "a👍🏽"), ("👍🏽", 7, ""), ("e\u{301}e\u{301}", 5, "e\u{301}"), ("abc", 0, ""),
    ])
    func `a text is cut in whole characters to a number of bytes`(text: String, limit: Int, cut: String) {
        #expect(Array(text.cut(toBytes: limit).utf8) == Array(cut.utf8))
    }
}
