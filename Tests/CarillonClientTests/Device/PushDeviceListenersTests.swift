import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// The receivers of a device's events, without a server.
@Suite(.timeLimit(.minutes(5)))
struct PushDeviceListenersTests {
    private final class Delegate: PushDeviceDelegate {
        let name: String
        let heard: Log

        init(_ heard: Log, named name: String = "") {
            self.name = name
            self.heard = heard
        }

        private func note(_ what: String) { heard.lines.withLock { $0.append(name + what) } }
        func didAddDelegate(to device: PushDevice) { note("added") }
        func didRemoveDelegate(from device: PushDevice) { note("removed") }
        func didRegister(_ device: PushDevice) { note("registered") }
        func didSuspend(_ device: PushDevice, because reason: PushDeviceSuspension) { note("suspended \(reason.rawValue)") }
        func didResume(_ device: PushDevice) { note("resumed") }
        func didFailRegistration(of device: PushDevice, _ error: PushError) { note("failed \(error.code)") }
        func didChangeStatus(of device: PushDevice, to status: PushDeviceStatus) { note("status") }
        func didUpdateSubscriptions(of device: PushDevice) { note("subscriptions") }
        func didResetBadge(of device: PushDevice) { note("badge") }
        func didFailBadgeReset(of device: PushDevice, _ error: PushError) { note("no badge \(error.code)") }
    }

    private final class Log: Sendable {
        let lines = Mutex<[String]>([])
        var all: [String] { lines.withLock { $0 } }
    }

    private let directory: TemporaryDirectory
    private let client: PushClient
    private let log = Log()

    init() throws {
        directory = TemporaryDirectory()
        client = try PushClient(
            configuration: .init(
                server: "http://127.0.0.1:9", app: "com.example.app", clientKey: "key", storageDirectory: directory.path))
    }

    @Test func `each callback is called with its event, in order`() async throws {
        let delegate = Delegate(log)
        client.device.addDelegate(delegate)
        client.device.addDelegate(delegate)
        let error = PushError(.registrationRefused, "no")
        client.device.listeners.notify([
            .statusChanged(.registered), .registered, .subscriptionsUpdated, .statusChanged(.suspended(.tokenDead)),
            .suspended(.tokenDead),
            .statusChanged(.registered), .resumed, .registrationFailed(error), .badgeReset, .badgeResetFailed(error),
        ])
        let expected = [
            "added", "status", "registered", "subscriptions", "status", "suspended token_dead", "status", "resumed",
            "failed registrationRefused", "badge", "no badge registrationRefused",
        ]
        try await eventually { log.all == expected }
        client.device.removeDelegate(Delegate(log))
        client.device.removeDelegate(delegate)
        client.device.removeDelegate(delegate)
        client.device.listeners.notify([.resumed])
        try await eventually { log.all == expected + ["removed"] }
        #expect(client.device.delegates.isEmpty)
    }

    @Test func `delegates are called in the order in which they were added, and each event goes to all before the next`()
        async throws
    {
        let (one, two) = (Delegate(log, named: "1 "), Delegate(log, named: "2 "))
        client.device.addDelegate(one)
        client.device.addDelegate(two)
        #expect(client.device.delegates.map { ($0 as? Delegate)?.name } == ["1 ", "2 "])
        client.device.listeners.notify([.resumed, .badgeReset])
        try await eventually { log.all.count == 6 }
        #expect(log.all == ["1 added", "2 added", "1 resumed", "2 resumed", "1 badge", "2 badge"])
        client.device.removeDelegate(one)
        client.device.addDelegate(one)
        #expect(client.device.delegates.map { ($0 as? Delegate)?.name } == ["2 ", "1 "])
    }

    @Test func `a delegate is not kept`() async throws {
        func addAndLetGo() async throws {
            let delegate = Delegate(log)
            client.device.addDelegate(delegate)
            #expect(client.device.delegates.count == 1)
        }
        try await addAndLetGo()
        try await eventually { log.all == ["added"] }
        try await eventually { client.device.delegates.isEmpty }
        client.device.listeners.notify([.resumed])
        let other = Delegate(log, named: "other ")
        client.device.addDelegate(other)
        try await eventually { log.all == ["added", "other added"] }
    }

    @Test func `each iteration has all events since its beginning: the newest hundred, and the number of dropped ones`()
        async throws
    {
        var first = client.device.events.makeAsyncIterator()
        client.device.listeners.notify([.registered])
        var second = client.device.events.makeAsyncIterator()
        client.device.listeners.notify([.resumed])
        #expect(await first.next() == .registered)
        #expect(await first.next() == .resumed)
        #expect(await second.next() == .resumed)
        for _ in 0..<150 { client.device.listeners.notify([.badgeReset]) }
        client.device.listeners.notify([.registered])
        var heard: [PushDeviceEvent] = []
        while heard.last != .registered, let event = await first.next() { heard.append(event) }
        #expect(heard.first == .missed(51))
        #expect(heard.count == 101)
    }

    @Test func `a badge that is not counted cannot be reset, and all listeners are notified`() async throws {
        let delegate = Delegate(log)
        client.device.addDelegate(delegate)
        var events = client.device.events.makeAsyncIterator()
        await #expect(throws: PushError.self) { try await client.device.resetBadge() }
        guard case .badgeResetFailed(let error) = await events.next() else {
            Issue.record("it was not notified")
            return
        }
        #expect(error.code == .deviceUnknown)
        try await eventually { log.all == ["added", "no badge deviceUnknown"] }
    }
}
