import CarillonWire
import Testing

/// The errors for invalid ids and versions of services.
struct ServiceIDTests {
    @Test(arguments: [
        ("", "empty"), ("com", "one label"), ("com.Example", "at character 5: a label begins"),
        ("Com.example", "at character 1: a label begins"), ("com..example", "at character 5: a label is empty"),
        ("com.example.", "at character 13: a label is empty"), ("com.3d", "at character 5: a label begins"),
        ("com.exam_ple", "at character 9: a label has"), ("com.example-", "at character 12: a label ends"),
        ("com.b\u{301}a", "at character 5: a label begins"), ("com.ab\u{301}", "at character 6: a label has"),
        ("com." + String(repeating: "a", count: 64), "at character 68: a label has up to 63"),
        ("com." + String(repeating: "a", count: 130), "has 134 bytes"),
    ])
    func `the fault of an id has its place`(_ text: String, _ wanted: String) throws {
        let problem = try #require(ServiceID.problem(in: text))
        #expect(problem.contains(wanted), "\(problem)")
        let refusal = #expect(throws: Refusal.self) { try ServiceID.checked(text) }
        #expect(refusal?.code == .serviceIDInvalid && refusal?.detail == problem)
    }

    @Test(arguments: [
        ("", "empty"), ("1..0", "at character 3: a number is missing"), ("1.x", "at character 3: a number has the digits"),
        ("1.01", "at character 3: a number does not begin"), ("1.1234567890", "at character 12: a number has up to 9"),
        ("1.0.0.0.0", "more than four"), ("1.2-beta", "at character 4: a number has the digits"),
    ])
    func `the fault of a version has its place`(_ text: String, _ wanted: String) throws {
        let problem = try #require(ServiceVersion.problem(in: text))
        #expect(problem.contains(wanted), "\(problem)")
        let refusal = #expect(throws: Refusal.self) { try ServiceVersion.checked(text) }
        #expect(refusal?.code == .serviceIDInvalid && refusal?.detail == problem)
    }

    @Test func `a valid id has no fault`() throws {
        #expect(ServiceID.problem(in: "com.example.transfer-file") == nil)
        #expect(ServiceVersion.problem(in: "1.0.0.0") == nil)
        #expect(try ServiceID.checked("com.example").text == "com.example")
        #expect(try ServiceVersion.checked("0").text == "0")
    }
}
