import CarillonWire
import Dispatch
import Foundation
import TestStores
import TestSupport
import Testing

@testable import CarillonCore
@testable import CarillonServer

/// The messages of a server to its service manager.
@Suite(.timeLimit(.minutes(5)))
struct NotifySocketTests {
    private let directory = TemporaryDirectory()
    private var path: String { directory.path + "/notify" }

    @Test func `the environment names the socket and the time of the watchdog`() {
        func watchdog(_ variables: [String: String]) -> Duration? {
            let environment = ["NOTIFY_SOCKET": "/run/notify"].merging(variables) { $1 }
            return NotifySocket(environment: environment, processID: 7)?.watchdog
        }
        #expect(watchdog([:]) == nil)
        #expect(watchdog(["WATCHDOG_USEC": "30000000"]) == .seconds(30))
        #expect(watchdog(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7"]) == .seconds(30))
        for pid in ["8", "x", ""] {
            #expect(watchdog(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": pid]) == nil, "\(pid)")
        }
        for time in ["0", "-1", "x", "", "99999999999999999999"] {
            #expect(watchdog(["WATCHDOG_USEC": time]) == nil, "\(time)")
        }
    }

    @Test(arguments: ["", "/", "@", "run/notify", "vsock:2:1234", "/" + String(repeating: "n", count: 120)])
    func `an address of another kind is no socket`(address: String) {
        #expect(NotifySocket(environment: ["NOTIFY_SOCKET": address], processID: 7) == nil)
        #expect(NotifySocket(environment: [:], processID: 7) == nil)
    }

    @Test(arguments: [false, true])
    func `a state reaches a path and an abstract name`(isAbstract: Bool) async throws {
        let name = isAbstract ? "@carillon-\(UUID().uuidString)" : path
        let receiver = try NotifyReceiver(name)
        let socket = try #require(NotifySocket(environment: ["NOTIFY_SOCKET": name], processID: 7))
        await socket.send("READY=1")
        #expect(await receiver.next() == "READY=1")
    }

    @Test func `a service manager that does not exist delays nothing`() async throws {
        let socket = try #require(NotifySocket(environment: ["NOTIFY_SOCKET": path], processID: 7))
        await socket.send("READY=1")
    }

    @Test func `a service manager is notified that a server is ready, works and stops, and not when it hangs`() async throws
    {
        let receiver = try NotifyReceiver(path)
        let variables = ["NOTIFY_SOCKET": path, "WATCHDOG_USEC": "200000"]
        let heard = Heard()
        try await ServedConnections.run {
            $0.notifySocket = NotifySocket(environment: variables, processID: 7)
        } _: { server in
            while await !heard.states.isSuperset(of: ["READY=1", "WATCHDOG=1"]) {
                await heard.add(try #require(await receiver.next()))
            }
            #expect(try await server.request("GET /health/ready").status == 200)
            let store = try #require(server.store)
            let isMoving = DispatchSemaphore(value: 0)
            let goOn: @Sendable () -> Void = {
                stores.onCommit(of: store, nil)
                for _ in 0..<100 { isMoving.signal() }
            }
            let app = try AppID.checked("com.example.late")
            stores.onCommit(of: store) { isMoving.wait() }
            async let created = server.domain.apps.create(app)
            defer { goOn() }
            try await eventually { store.oldestChangeWait > .milliseconds(300) }
            // States that were sent before can arrive for the second of ``NotifySocket/send(_:)``.
            try await eventually { await receiver.next(withinMilliseconds: 2_000) == nil }
            #expect(await receiver.next(withinMilliseconds: 2_000) == nil)
            goOn()
            _ = try await created
            #expect(await receiver.next() == "WATCHDOG=1")
        }
        while let state = await receiver.next(withinMilliseconds: 100) { await heard.add(state) }
        #expect(await heard.states == ["READY=1", "WATCHDOG=1", "STOPPING=1"])
    }

    private actor Heard {
        private(set) var states: Set<String> = []
        func add(_ state: String) { states.insert(state) }
    }
}
