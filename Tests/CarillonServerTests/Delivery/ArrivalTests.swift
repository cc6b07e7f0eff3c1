import CarillonCore
import CarillonWire
import Foundation
import HTTPTypes
import TestSupport
import Testing

@testable import CarillonServer

/// Devices that send hello: which ones are accepted, and the end of the earlier connection.
@Suite(.timeLimit(.minutes(5)))
struct ArrivalTests {
    private let load = PageRequest(after: 0, limit: 9, bytes: 10_000)

    private func feed(_ domain: HomeDomain, of device: Device) -> InboxFeed {
        InboxFeed(of: device, homes: domain.homes, time: domain.time, limits: .init(), logger: domain.logger)
    }

    @Test func `only a client with the credential replaces a device's connection`() async throws {
        let fixture = try await RouteFixture()
        let domain = fixture.domain
        let app = try AppID.checked("com.example.app")
        _ = try await domain.apps.create(app)
        let (device, credential) = try await domain.devices.register(app: app)
        let (_, other) = try await domain.devices.register(app: app)
        let sessions = domain.runtime.sessions
        let first = feed(domain, of: device)
        await first.begin()
        let identifier = SocketIdentifier(homes: domain.homes, anonymousApp: nil, logger: domain.logger)
        let intruder = feed(domain, of: device)
        let forged = DeviceCredential(
            device: device.id, secret: Array(repeating: 1, count: DeviceCredential.secretByteCount)
        ).text
        for hello in [
            ClientFrame.Hello(carillon: 1, device: device.id.description, credential: other.text),
            ClientFrame.Hello(carillon: 1, device: device.id.description, credential: forged),
            ClientFrame.Hello(carillon: 1, device: device.id.description, credential: nil),
        ] {
            let result = await identifier.identify(hello, load, as: intruder)
            guard case .failure(let refusal) = result else {
                Issue.record("let in with \(hello)")
                continue
            }
            #expect(refusal.code == .unauthorized)
            #expect(sessions.session(of: device.serial) === first)
        }
        let hello = ClientFrame.Hello(carillon: 1, device: device.id.description, credential: credential.text)
        let result = await identifier.identify(hello, load, as: intruder)
        guard case .success(let identified) = result else {
            Issue.record("its owner is not let in")
            return
        }
        #expect(identified.identity.owner == .device(device.serial))
        #expect(identified.page == InboxPage(envelopes: [], isComplete: true))
        #expect(sessions.session(of: device.serial) === intruder)
    }

    @Test func `a device that arrives is marked as seen, and not if its proof is wrong`() async throws {
        let world = try await ServiceWorld()
        let domain = world.routes.domain
        let app = try AppID.checked("com.example.app")
        _ = try await domain.apps.create(app)
        let (device, credential) = try await domain.devices.register(app: app)
        let userAgent = UserAgentID(random: .system)
        let anonymous = try await domain.devices.registerAnonymous(userAgent, app: app, from: nil)
        world.clock.pass(2 * 86_400)
        func seen() async throws -> [Timestamp?] {
            try await domain.devices.writeSeen()
            return [
                try await domain.devices.find(device.serial)?.seenAt,
                try await domain.devices.find(anonymous.serial)?.seenAt,
            ]
        }
        let registered = DeviceName.id(device.id, credential: credential.hash)
        let wrong = DeviceProof.credential(userAgent.hash)
        let feeds = [feed(domain, of: device), feed(domain, of: anonymous)]
        let refused = try await domain.homes.arrive(registered, wrong, load, speaking: 1, as: feeds[0])
        #expect(refused.device == nil)
        #expect(try await seen() == [device.seenAt, anonymous.seenAt])
        _ = try await domain.homes.arrive(registered, .credential(credential.hash), load, speaking: 1, as: feeds[0])
        #expect(try await seen() == [world.clock.now, anonymous.seenAt])
        _ = try await domain.homes.arrive(
            .credential(userAgent.hash), .userAgent(userAgent.hash), load, speaking: 0, as: feeds[1])
        #expect(try await seen() == [world.clock.now, world.clock.now])
        domain.runtime.leave(feeds[0], of: device.serial)
        domain.runtime.leave(feeds[1], of: anonymous.serial)
    }

    @Test func `a socket and a stream whose home cannot be used end, and the log contains the reason`() async throws {
        let link = DelayedHome()
        let domain = try await RouteFixture(link: { home in link.connected(to: home) }).domain
        let app = try AppID.checked("com.example.app")
        _ = try await domain.apps.create(app)
        let (device, credential) = try await domain.devices.register(app: app)
        let catcher = LogCatcher()
        let line = "warning cannot use home of device; ending connection reason=unreachable"
        let identifier = SocketIdentifier(homes: domain.homes, anonymousApp: app, logger: catcher.logger)
        let feed = InboxFeed(
            of: device, homes: domain.homes, time: domain.time, limits: .init(),
            logger: catcher.logger)
        let hellos = [
            ClientFrame.Hello(carillon: 1, device: device.id.description, credential: credential.text),
            ClientFrame.Hello(uaid: UserAgentID(random: .system).text, carillon: 1),
        ]
        for (place, hello) in hellos.enumerated() {
            link.next(.unreachable)
            guard case .failure(let refusal) = await identifier.identify(hello, load, as: feed) else {
                Issue.record("the socket goes on")
                continue
            }
            #expect(refusal.code == .internalError)
            #expect(catcher.lines == Array(repeating: line, count: place + 1))
        }
        link.next(.unreachable)
        await feed.begin()
        feed.finish()
        #expect(catcher.lines == Array(repeating: line, count: 3))
        #expect(link.connections == 0 && link.leaves == 0)
    }

    @Test func `a connection that ends while its device is read leaves no session`() async throws {
        try await WatchedServer.run { server in
            let channel = try await server.openChannel()
            let home = server.home(of: channel.device)
            for _ in 0..<40 {
                let peer = try RawPeer(port: server.port)
                try peer.send(
                    "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                        + "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
                _ = try await peer.read(until: "\r\n\r\n")
                // It ends while its device is read, or just after.
                let hello = #"{"messageType":"hello","carillon":1,"credential":"\#(channel.credential)"}"#
                try peer.sendFrame(hello)
                try peer.sendFrame(0x8)
            }
            try await eventually { home.home.population.sessions == 0 }
        }
    }

    @Test func `a poll does not use the page of an inbox that changes meanwhile`() async throws {
        let fixture = try await RouteFixture()
        let domain = fixture.domain
        let app = try AppID.checked("com.example.app")
        _ = try await domain.apps.create(app)
        let (device, credential) = try await domain.devices.register(app: app)
        var random = SystemRandomNumberGenerator()
        let channel = try await domain.channels.register(
            .random(using: &random), device: device.serial, name: nil, vapidKey: nil
        ).channel
        let (home, now) = (domain.runtime, domain.time.now())
        let delivered = await home.inbox.deliver(to: device.serial, .kept) { id in
            Envelope(
                id: id, device: device.serial, app: device.app, origin: channel.origin,
                kind: .message(.init(body: [1], coding: nil)), acceptedAt: now, expiresAt: now.adding(seconds: 3600))
        }
        #expect(delivered == .stored(replaced: nil))
        await home.inbox.flush(device.serial)
        let name = DeviceName.id(device.id, credential: credential.hash)
        let quiet = try await domain.updateDelivery.visit(of: name) { _ in true }
        let message = try #require(quiet?.waiting?.first?.id)
        let withdrawn = try await domain.updateDelivery.visit(of: name) { _ in
            home.sessions.withdraw(.envelope(message.position), from: device.serial) {}
            return true
        }
        #expect(withdrawn?.waiting == nil && withdrawn?.isEmpty == false)
        let answered = try await domain.updateDelivery.visit(of: name) { device in
            home.inbox.finish(message, device: device.serial, .acknowledged, code: nil)
            return true
        }
        #expect(answered?.waiting == nil && answered?.isEmpty == false)
        await home.inbox.flush(device.serial)
        let last = try await domain.updateDelivery.visit(of: name) { _ in true }
        #expect(last?.waiting?.isEmpty == true)
    }

    @Test func `a finished poll waits no more`() async throws {
        let fixture = try await RouteFixture()
        let device = try await fixture.device()
        #expect(try await fixture.request(.get, "/v1/inbox", key: device.credential).status == 200)
        #expect(fixture.domain.runtime.sessions.population == (0, 0))
    }
}
