import Testing

@testable import CarillonAPNsSimulator

struct DeviceBookTests {
    private func offline() throws -> Asker {
        let asker = try Asker()
        var copy = asker
        copy.service.devices.put(Device(token: Asker.token, topic: "com.example.app", isOnline: false), at: asker.now)
        return copy
    }

    private func text(_ text: String) -> (inout Submission) -> Void {
        { $0.setBody("{\"aps\":{\"alert\":{\"title\":\"\(text)\",\"body\":\"b\"},\"badge\":3}}") }
    }

    @Test func `a device that is online shows each push`() throws {
        var asker = try Asker()
        _ = try asker.ask(text("one"))
        _ = try asker.ask(text("two"))
        let report = try asker.report()
        #expect(report.shown.map(\.title) == ["one", "two"])
        #expect(report.shown.first?.badge == 3)
        #expect(report.shown.first?.isVisible == true)
    }

    @Test func `a collapse identifier replaces the notification that is shown`() throws {
        var asker = try Asker()
        for (title, id) in [("one", "a"), ("other", "b"), ("two", "a")] {
            _ = try asker.ask {
                text(title)(&$0)
                $0.fields.collapseID = id
            }
        }
        let report = try asker.report()
        #expect(report.shown.map(\.title) == ["other", "two"])
        #expect(report.replaced == 1)
    }

    @Test func `one push of an app waits for a device that is offline`() throws {
        var asker = try offline()
        _ = try asker.ask(text("one"))
        asker.now = asker.now + .seconds(1)
        _ = try asker.ask(text("two"))
        var report = try asker.report()
        #expect(report.shown.isEmpty)
        #expect(report.waiting.map(\.title) == ["two"])
        #expect(report.replaced == 1)
        asker.service.devices.put(Device(token: Asker.token, topic: "com.example.app"), at: asker.now)
        report = try asker.report()
        #expect(report.shown.map(\.title) == ["two"])
        #expect(report.waiting.isEmpty)
    }

    @Test func `a push that is for now only does not wait`() throws {
        var asker = try offline()
        #expect(try asker.ask { $0.fields.expiration = "0" }.status == 200)
        let report = try asker.report()
        #expect(report.waiting.isEmpty)
        #expect(report.discarded == 1)
    }

    @Test(arguments: [
        ("1800000060", 59, true), ("1800000060", 60, false), (nil, 86_400 * 30 - 1, true), (nil, 86_400 * 30, false),
    ])
    func `a push waits until it expires, thirty days at most`(expiration: String?, seconds: Int, isShown: Bool) throws {
        var asker = try offline()
        _ = try asker.ask { $0.fields.expiration = expiration }
        asker.now = asker.now + .seconds(seconds)
        asker.service.devices.put(Device(token: Asker.token, topic: "com.example.app"), at: asker.now)
        let report = try asker.report()
        #expect(report.shown.count == (isShown ? 1 : 0))
        #expect(report.expired == (isShown ? 0 : 1))
    }

    @Test func `a refused push reaches nobody`() throws {
        var asker = try Asker()
        _ = try asker.ask { $0.fields.priority = "2" }
        let report = try asker.report()
        #expect(report.shown.isEmpty)
    }
}
