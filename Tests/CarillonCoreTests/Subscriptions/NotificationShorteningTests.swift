import CarillonBasics
import CarillonCore
import CarillonWire
import Testing

@Suite(.timeLimit(.minutes(5)))
struct NotificationShorteningTests {
    private func fired(_ format: String) throws -> FiredNotification {
        FiredNotification(
            subscription: SubscriptionID(Bytes16(high: 0, low: 1)), key: nil, item: "i", at: 0,
            notification: try #require(JSONValue(parsing: Array(format.utf8))))
    }

    private func size(_ fired: FiredNotification) -> Int { fired.notification.bytes.count }

    private func shortened(_ format: String, _ limit: Int) throws -> JSONValue {
        let fired = try fired(format)
        let shortened = NotificationShortening.shortened(fired, within: limit, size)
        #expect(size(shortened) <= limit)
        return shortened.notification
    }

    private func x(_ count: Int, _ text: String = "x") -> String { String(repeating: text, count: count) }

    @Test func `the longest text is cut, and others only when that is not enough`() throws {
        let format = #"{"title":"short","body":"\#(x(200))","subtitle":"\#(x(50))"}"#
        let some = try shortened(format, 150)
        #expect(some["title"] == .string("short"))
        #expect(some["subtitle"] == .string(x(50)))
        guard case .string(let body)? = some["body"] else { return }
        #expect(body.hasSuffix("x…"))
        #expect(size(try fired(#"{"title":"short","body":"\#(body)","subtitle":"\#(x(50))"}"#)) == 150)
        let more = try shortened(format, 100)
        #expect(more["title"] == .string("short"))
        #expect(more["subtitle"] == more["body"])
    }

    @Test func `arguments are cut, and values other than texts stay`() throws {
        let format =
            #"{"titleKey":"\#(x(20))","titleArguments":["\#(x(300))","a",7],"custom":{"body":"\#(x(40))"},"sound":"s"}"#
        let some = try shortened(format, 200)
        #expect(some["titleKey"] == .string(x(20)))
        #expect(some["custom"]?["body"] == .string(x(40)))
        guard case .array(let arguments)? = some["titleArguments"], case .string(let first)? = arguments.first else {
            return
        }
        #expect(first.hasSuffix("x…"))
        #expect(arguments.dropFirst() == [.string("a"), .integer(7)])
    }

    @Test(arguments: ["👨‍👩‍👧‍👦", "e\u{301}", "🇩🇪", "ä", "\r\n"])
    func `a text is cut between characters`(_ character: String) throws {
        for limit in 40..<80 {
            let text = x(100, character)
            let notification = NotificationShortening.shortened(
                FiredNotification(
                    subscription: SubscriptionID(Bytes16(high: 0, low: 1)), key: nil, item: "i", at: 0,
                    notification: .object([.init(name: "title", value: .string(text))])), within: limit, size)
            guard case .string(let title)? = notification.notification["title"] else { return }
            #expect(size(notification) <= limit)
            #expect(title.last == "…")
            #expect(title.dropLast().allSatisfy { String($0) == character })
        }
    }

    @Test func `a notification fits completely, shortened, or not at all`() throws {
        let text = try fired(#"{"title":"\#(x(100))"}"#)
        #expect(NotificationShortening.fit(text, within: size(text), size) == .whole)
        #expect(NotificationShortening.fit(text, within: size(text) - 1, size) == .shortened)
        #expect(NotificationShortening.fit(text, within: 15, size) == .shortened)
        #expect(NotificationShortening.fit(text, within: 14, size) == .tooLarge)
        let data = try fired(#"{"title":"t","custom":{"x":"\#(x(100))"}}"#)
        #expect(NotificationShortening.fit(data, within: 100, size) == .tooLarge)
        #expect(NotificationShortening.shortened(data, within: 100, size) == data)
        #expect(NotificationShortening.shortened(text, within: 1000, size) == text)
    }
}
