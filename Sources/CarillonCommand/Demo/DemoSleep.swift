import CarillonAPNsSimulator
import CarillonBasics
import CarillonClient
import CarillonServer
import CarillonWire
import Foundation
import NIOHTTP1

/// The scenario of an app without a connection: the server wakes it through Apple's push service, which is simulated here, and
/// the app fetches the waiting messages.
struct DemoSleep {
    let client: PushClient
    let channel: PushChannel
    let simulator: APNsSimulator
    let domain: HomeDomain
    let app: AppID
    let say: @Sendable (String) -> Void

    let token = (0..<32).map { _ in Hexadecimal.encode([UInt8.random(in: 0...255)]) }.joined()

    func notify() async throws {
        try await prepare()
        await client.stop()
        say("The phone sleeps: the app has no connection and does not run.")
        guard let endpoint = channel.endpoint else { return }
        let sent = ContinuousClock.now
        let api = APIClient(server: "", key: nil)
        let answer = try api.accepted(
            try await api.send(
                .POST, endpoint, headers: [("ttl", "60"), ("content-encoding", "identity")],
                body: Array("Good morning".utf8)),
            as: { $0.isReceipt })
        let moments = Moments(since: sent, say: say)
        moments.show("sent          the backend posts a message to the same endpoint")
        let push = try await nextPush()
        moments.show("woken         Apple's push service received: \(String(decoding: push.payload, as: UTF8.self))")
        let result = await client.handleWake(within: .seconds(20))
        guard result == .newData else {
            return say("  the app was woken, but fetched nothing: \(client.lastFailure as Any)")
        }
        moments.show("fetched       the app connected briefly, and fetched the waiting message")
        for try await event in channel.events {
            guard case .message(let message) = event else { continue }
            moments.show("acknowledged  the app handled the message: \"\(message.text ?? "")\"")
            try await message.acknowledge()
            break
        }
        if let id = answer.headers.first(name: "location")?.split(separator: "/").last {
            say("With a sender key the backend can read the outcome of the message and of its push: GET /v1/messages/\(id)")
        }
    }

    /// Sets the app's push credentials at the server as an operator, and passes the push token to the app as the system.
    private func prepare() async throws {
        let key = simulator.signingKey
        let members = [("p8", key.privateKey ?? ""), ("keyID", key.id), ("teamID", key.teamID)]
        let body = JSONValue.object(members.map { .init(name: $0, value: .string($1)) })
        _ = try await domain.gateways.set(body, of: app, for: .production)
        try simulator.add(.init(token: token, topic: app.text, environment: .production))
        var events = client.device.events.makeAsyncIterator()
        try await client.device.setToken(token)
        while let event = await events.next() {
            if case .registered = event { break }
            if case .registrationFailed(let error) = event { throw error }
        }
        say("The app registered its push token, and the operator set the app's push credentials for Apple.")
    }

    private func nextPush() async throws -> APNsSimulator.DeliveredNotification {
        let deadline = ContinuousClock.now + .seconds(30)
        while ContinuousClock.now < deadline {
            if let push = simulator.device(token, in: .production)?.shown.first { return push }
            try await Task.sleep(for: .milliseconds(20))
        }
        let reason = domain.gateways.pausedQueues.first?.reason ?? "the server sent no push within 30 seconds"
        throw CommandFault(ExitStatus.unreachable, "cannot reach the simulated push service: \(reason)")
    }

    private struct Moments {
        let since: ContinuousClock.Instant
        let say: @Sendable (String) -> Void

        func show(_ text: String) {
            let milliseconds = (ContinuousClock.now - since) / .milliseconds(1)
            say("  \(String(format: "%7.1f", milliseconds)) ms  \(text)")
        }
    }
}
