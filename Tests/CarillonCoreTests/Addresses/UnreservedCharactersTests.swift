import Testing

@testable import CarillonCore

struct UnreservedCharactersTests {
    @Test(arguments: [
        ("/push/abc", "/push/abc"), ("/push/%61%62%63", "/push/abc"), ("%41%5a%30%39%2D%2e%5F%7e", "AZ09-._~"),
        ("%2F%3f%25%20", "%2F%3f%25%20"), ("%2541", "%2541"), ("%", "%"), ("%6", "%6"), ("%6g", "%6g"), ("%é1", "%é1"),
        ("%%41", "%%41"), ("%2%46", "%2%46"), ("%%34%31", "%%34%31"), ("%41%2%46", "A%2%46"), ("%252%46", "%252F"),
        ("%2F%41", "%2FA"), ("%C3%A9", "%C3%A9"), ("/x?a=%62", "/x?a=b"),
    ])
    func `only unreserved characters are decoded`(text: String, decoded: String) {
        #expect(text.decodingUnreserved == decoded)
        #expect(decoded.decodingUnreserved == decoded)
    }
}
