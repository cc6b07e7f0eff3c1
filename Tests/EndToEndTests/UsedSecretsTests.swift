import Testing

struct UsedSecretsTests {
    private static let secret = String(repeating: "Zx9", count: 8)

    @Test(arguments: [
        #"{"credential":"SECRET"}"#, #"{"secrets":["SECRET"]}"#, #"{"a":[{"endpoint":"http://a:1/push/SECRET?x=1"}]}"#,
    ])
    func `a line that shows a used secret is an issue`(body: String) {
        let used = UsedSecrets()
        used.noteMembers(of: body.split(separator: "SECRET").joined(separator: Self.secret))
        used.check(["serving address=http://a:1"])
        withKnownIssue { used.check(["serving", "failed reason=[\(Self.secret)]"]) }
    }
}
