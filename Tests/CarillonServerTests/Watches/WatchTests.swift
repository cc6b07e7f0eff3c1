import CarillonCore
import CarillonWire
import NIOHTTP1
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// A real server, its store, its routes, and backends with the behaviour that the test sets.
@Suite(.timeLimit(.minutes(5)))
struct WatchTests {
    private let names = NameLookup { name in
        name == "back.example" ? .addresses([.v4(0x7F00_0001)]) : .notFound("no such name")
    }

    /// Waits until another backend was pinged often enough that all work due within two seconds had its turn.
    private func letTimePass(_ server: WatchedServer) async throws {
        let other = try await ScriptedBackend.start()
        _ = try await server.watch(try await server.openChannel(), ping: "http://127.0.0.1:\(other.port)")
        _ = await other.received(3)
    }

    // MARK: Failures and recovery

    @Test(arguments: PingFailure.allCases)
    func `each failure is reported, once, under its own number, and its end is reported too`(failure: PingFailure)
        async throws
    {
        let authority = try TestAuthority()
        let file = try authority.file()
        let good = try await ScriptedBackend.start()
        var bad: ScriptedBackend?
        let closed = try ClosedPort()
        var address = { (port: Int) in "http://back.example:\(port)/ping" }
        switch failure {
        case .nameNotResolved:
            bad = try await ScriptedBackend.start()
            address = { "http://gone.example:\($0)/ping" }
        case .noConnection: break
        case .badCertificate:
            bad = try await ScriptedBackend.start(tls: authority.serverContext(names: ["other.example"]))
            address = { "https://back.example:\($0)/ping" }
        case .noAnswerInTime: bad = try await ScriptedBackend.start(.stall(""))
        case .invalidAnswer: bad = try await ScriptedBackend.start(.status(302, headers: "Location: /\r\n"))
        case .tokenLost: bad = try await ScriptedBackend.start(.status(410))
        }
        let badAddress = address(bad?.port ?? closed.number)
        try await WatchedServer.run(configure: {
            $0.lookup = names
            $0.authorityFile = file
            if failure == .noAnswerInTime { $0.answerSeconds = 3 }
        }) { server in
            let channel = try await server.openChannel()
            let other = try await server.openChannel()
            _ = try await server.watch(channel, ping: badAddress)
            let event = try await server.nextEvent(channel)
            #expect(event.event == "pingFailed")
            #expect(event.code == failure.rawValue)
            #expect(event.channelID == channel.id)
            let shown = try await server.shown(channel)
            #expect(shown.lastPing?.result == "failed")
            #expect(shown.lastPing?.code == failure.rawValue)
            #expect(shown.secret == nil)

            // The channel is open: it accepts messages, and the next event is that the backend has recovered.
            let sent = try await server.request(
                .POST, "/push/\(channel.token)", headers: ["TTL": "60", "Content-Encoding": "identity"], body: "x")
            #expect(sent.status == 201)
            #expect(try await server.nextEvent(channel).event == nil)
            _ = try await server.watch(channel, ping: "http://back.example:\(good.port)/ping")
            #expect(try await server.nextEvent(channel).event == "recovered")
            while try await server.shown(channel).lastPing?.result != "answered" { _ = await good.received(1) }
            #expect(try await server.events(channel, wait: 0).isEmpty)
            #expect(try await server.events(other, wait: 0).isEmpty)
        }
        withExtendedLifetime((bad, closed)) {}
    }

    @Test func `a device that is away finds the present state, however often it changed`() async throws {
        let backend = try await ScriptedBackend.start(.status(500))
        try await WatchedServer.run { server in
            let channel = try await server.openChannel()
            _ = try await server.watch(channel, ping: "http://127.0.0.1:\(backend.port)")
            for (count, status) in [(1, 410), (2, 200), (3, 500), (4, 410)] {
                _ = await backend.received(count)
                backend.answer = .status(status)
            }
            try await eventually {
                let events = try await server.events(channel, wait: 0)
                return events.map(\.event) == ["pingFailed"] && events.first?.code == 605
            }
        }
    }

    @Test func `ending the watch of a backend that failed counts as an answer of the backend, and is the last event`()
        async throws
    {
        let backend = try await ScriptedBackend.start(.status(503))
        try await WatchedServer.run { server in
            let channel = try await server.openChannel()
            _ = try await server.watch(channel, ping: "http://127.0.0.1:\(backend.port)")
            #expect(try await server.nextEvent(channel).event == "pingFailed")
            #expect(try await server.request(.DELETE, "/push/\(channel.token)/watch").status == 204)
            #expect(try await server.nextEvent(channel).event == "recovered")
            let pings = backend.received.count
            try await letTimePass(server)
            #expect(backend.received.count <= pings + 1)
        }
    }

    // MARK: Calls

    @Test func `a ping names the token, and is signed so that the backend can verify it`() async throws {
        let backend = try await ScriptedBackend.start()
        try await WatchedServer.run { server in
            let channel = try await server.openChannel()
            let made = try await server.watch(channel, ping: "http://127.0.0.1:\(backend.port)/hook?x=1")
            #expect(made.secret?.hasPrefix("whsec_") == true)
            let request = try #require(await backend.received(1).first)
            #expect(request.head.uri == "/hook?x=1")
            #expect(request.text.contains(#""type":"channel.ping""#))
            #expect(request.text.contains(#""token":"\#(channel.token)""#))
            let ids = await backend.received(3).flatMap { $0.head.headers["webhook-id"] }
            #expect(Set(ids).count == ids.count)
        }
    }

    @Test func `never two pings at once go to one address, and another address does not wait`() async throws {
        let slow = try await ScriptedBackend.start(.late(milliseconds: 300))
        let quick = try await ScriptedBackend.start()
        try await WatchedServer.run { server in
            for _ in 0..<12 {
                let channel = try await server.openChannel()
                _ = try await server.watch(channel, ping: "http://127.0.0.1:\(slow.port)")
            }
            let channel = try await server.openChannel()
            _ = try await server.watch(channel, ping: "http://127.0.0.1:\(quick.port)")
            _ = await quick.received(4)
            _ = await slow.received(3)
            #expect(slow.mostUnderWay == 1)
        }
    }

    @Test func `the end of a channel is reported once, again until it was accepted, under one name`() async throws {
        let backend = try await ScriptedBackend.start(.status(500))
        try await WatchedServer.run { server in
            let channel = try await server.openChannel()
            _ = try await server.watch(channel, gone: "http://127.0.0.1:\(backend.port)/gone")
            let closed = try await server.request(
                .DELETE, "/v1/device/channels/\(channel.id)", headers: ["Authorization": "Bearer \(channel.credential)"])
            #expect(closed.status == 204)
            _ = await backend.received(1)
            backend.answer = .status(200)
            let calls = await backend.received(2)
            let ids = Set(calls.flatMap { $0.head.headers["webhook-id"] })
            #expect(ids.count == 1)
            #expect(calls[0].text == calls[1].text)
            #expect(calls[0].text.contains(#""type":"channel.disconnected""#))
            #expect(calls[0].text.contains(#""reason":"unregistered""#))
            #expect(calls[0].text.contains(channel.token))
            try await letTimePass(server)
            #expect(backend.received.count == 2)
            #expect(try await server.request(.GET, "/push/\(channel.token)/watch").status == 410)
        }
    }

    // MARK: Restarts

    @Test func `pings that are due while the server is away come after its start, once each`() async throws {
        let directory = WatchedServer.directory()
        let backend = try await ScriptedBackend.start()
        try await WatchedServer.run(directory) { server in
            for number in 0..<20 {
                let channel = try await server.openChannel()
                let watch = PutWatch(
                    pingAddress: "http://127.0.0.1:\(backend.port)/\(number)", pingIntervalSeconds: 2)
                #expect(try await server.put(watch, on: channel).status == 201)
            }
        }
        let before = backend.received.count
        // An hour passes: the times that were set when the server ran are an hour old.
        let opened = try stores.factory.open(directory: directory, makesMissing: false, settings: StoreSettings())
        try await opened.store.bringBackWork(in: .all, at: TimeSource.system.now().adding(seconds: -3600))
        try opened.close()
        let began = ContinuousClock.now
        try await WatchedServer.run(directory) { _ in
            let pings = await backend.received(before + 20)[before...].prefix(20)
            #expect(ContinuousClock.now - began > .milliseconds(700), "they were spread")
            #expect(Set(pings.map(\.head.uri)).count >= 15, "each had its turn")
        }
    }

    @Test func `a server that stops while a backend hangs does not wait for it, and pings it again`() async throws {
        let directory = WatchedServer.directory()
        let backend = try await ScriptedBackend.start(.stall(""))
        try await WatchedServer.run(
            directory,
            configure: {
                // Longer than the time limit of the suite.
                $0.answerSeconds = 3600
                $0.stopMilliseconds = 100
            }
        ) { server in
            let channel = try await server.openChannel()
            _ = try await server.watch(channel, ping: "http://127.0.0.1:\(backend.port)")
            _ = await backend.received(1)
        }
        backend.answer = .status(204)
        try await WatchedServer.run(directory) { _ in
            _ = await backend.received(2)
        }
    }

    // MARK: Fairness

    @Test func `a device whose addresses all hang delays nobody else's pings`() async throws {
        let hangs = try await ScriptedBackend.start(.stall(""))
        let quick = try await ScriptedBackend.start()
        try await WatchedServer.run(configure: {
            // Longer than the time limit of the suite.
            $0.answerSeconds = 3600
            $0.lookup = NameLookup { _ in .addresses([.v4(0x7F00_0001)]) }
        }) { server in
            let first = try await server.openChannel()
            for number in 0..<90 {
                let channel = try await server.openChannel(beside: first)
                _ = try await server.watch(channel, ping: "http://hangs\(number).example:\(hangs.port)")
            }
            let other = try await server.openChannel()
            _ = try await server.watch(other, ping: "http://127.0.0.1:\(quick.port)")
            _ = await quick.received(4)
            #expect(hangs.mostUnderWay <= 4)
            #expect(hangs.mostUnderWay > 0)
        }
    }

    @Test func `no more calls are under way than the operator allows`() async throws {
        let hangs = try await ScriptedBackend.start(.stall(""))
        try await WatchedServer.run(configure: {
            $0.answerSeconds = 3
            $0.pace = WorkPace.Limits(underWay: 1, perSecond: 500)
            $0.lookup = NameLookup { _ in .addresses([.v4(0x7F00_0001)]) }
        }) { server in
            for number in 0..<4 {
                let channel = try await server.openChannel()
                _ = try await server.watch(channel, ping: "http://hangs\(number).example:\(hangs.port)")
            }
            _ = await hangs.received(3)
            // The end of a call may be known here before it is known there.
            #expect(hangs.mostUnderWay <= 2)
        }
    }

    @Test func `a device has a hundred watches`() async throws {
        try await WatchedServer.run { server in
            let first = try await server.openChannel()
            for _ in 0..<Limits.watchesPerDevice {
                let channel = try await server.openChannel(beside: first)
                _ = try await server.watch(channel, gone: "http://back.example")
            }
            let answer = try await server.put(PutWatch(disconnectAddress: "http://back.example"), on: first)
            #expect(answer.status == 409)
            #expect(try answer.decode(ProblemDocument.self).code == "watches_too_many")
            let other = try await server.openChannel()
            #expect(try await server.put(PutWatch(disconnectAddress: "http://back.example"), on: other).status == 201)
        }
    }

    // MARK: Bad input

    @Test func `a watch is refused with a code for each thing that is wrong with it`() async throws {
        try await WatchedServer.run(configure: {
            $0.rules.allowsPrivate = false
            $0.shortestPingSeconds = 15
        }) { server in
            let channel = try await server.openChannel()
            func refusal(_ body: String, _ token: String = channel.token) async throws -> String? {
                let answer = try await server.request(.PUT, "/push/\(token)/watch", body: body)
                let problem = try answer.decode(ProblemDocument.self)
                #expect(problem.status == answer.status)
                return problem.code
            }
            #expect(try await refusal("") == "json_invalid")
            #expect(try await refusal("{}") == "field_missing")
            #expect(try await refusal(#"{"pingIntervalSeconds":60}"#) == "field_missing")
            #expect(try await refusal(#"{"pingAdress":"http://example.com"}"#) == "field_unknown")
            #expect(try await refusal(#"{"pingAddress":7}"#) == "field_invalid")
            for seconds in [14, 0, -1, 86_401] {
                let body = #"{"pingAddress":"http://example.com","pingIntervalSeconds":\#(seconds)}"#
                #expect(try await refusal(body) == "field_invalid")
            }
            for address in ["ftp://example.com", "http://a:b@example.com", "http://0x7f.1", "", "http://[::1"] {
                #expect(try await refusal(#"{"pingAddress":"\#(address)"}"#) == "watch_address_invalid")
                #expect(try await refusal(#"{"disconnectAddress":"\#(address)"}"#) == "watch_address_invalid")
            }
            for address in ["http://127.0.0.1", "http://[::ffff:10.0.0.1]", "http://localhost", "http://169.254.169.254"] {
                #expect(try await refusal(#"{"pingAddress":"\#(address)"}"#) == "watch_address_forbidden")
                #expect(try await refusal(#"{"disconnectAddress":"\#(address)"}"#) == "watch_address_forbidden")
            }
            let good = #"{"pingAddress":"http://example.com"}"#
            #expect(try await refusal(good, "nonsense") == "token_unknown")
            #expect(try await refusal(good, String(repeating: "A", count: 60)) == "token_unknown")
            let show = try await server.request(.GET, "/push/\(channel.token)/watch")
            #expect(try show.decode(ProblemDocument.self).code == "watch_unknown")
            #expect(try await server.request(.DELETE, "/push/\(channel.token)/watch").status == 404)
            #expect(try await server.request(.POST, "/push/\(channel.token)/watch").status == 405)
        }
    }

    @Test func `the secret is shown once, kept by later puts, and created anew on request`() async throws {
        let backend = try await ScriptedBackend.start()
        try await WatchedServer.run { server in
            let channel = try await server.openChannel()
            let address = "http://127.0.0.1:\(backend.port)"
            let first = try await server.put(PutWatch(disconnectAddress: address), on: channel)
            #expect(first.status == 201)
            #expect(first.headers["cache-control"] == ["no-store"])
            let secret = try #require(try first.decode(WatchBody.self).secret)
            let second = try await server.put(PutWatch(pingAddress: address), on: channel)
            #expect(second.status == 200)
            let body = try second.decode(WatchBody.self)
            #expect(body.secret == nil)
            #expect(body.disconnectAddress == nil)
            #expect(body.pingIntervalSeconds == 60)
            let third = try await server.put(PutWatch(pingAddress: address, renewSecret: true), on: channel)
            let renewed = try #require(try third.decode(WatchBody.self).secret)
            #expect(renewed != secret)
        }
    }
}
