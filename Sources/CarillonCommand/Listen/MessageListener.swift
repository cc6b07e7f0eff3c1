import CarillonBasics
import CarillonClient
import CarillonWire
import ServiceLifecycle

/// Opens one channel, and prints its events until it ends or the process is stopped.
struct MessageListener: Service {
    let client: PushClient
    let channel: PushChannel
    let printer: Printer
    let closes: Bool
    let isEncrypted: Bool

    func run() async throws {
        try await cancelWhenGracefulShutdown {
            // Each task returns whether the listener has finished.
            try await withThrowingTaskGroup(of: Bool.self) { group in
                group.addTask {
                    await reportAvailability()
                    return false
                }
                if closes { group.addTask { try await failWithoutServer() } }
                group.addTask {
                    try await listen()
                    return true
                }
                while let isDone = try await group.next(), !isDone {}
                group.cancelAll()
            }
        }
    }

    private func reportAvailability() async {
        guard printer.isJSON else { return }
        for await availability in client.availabilityUpdates {
            printer.print(
                [
                    "event": "availability", "network": .flag(availability.network), "service": .flag(availability.service),
                ], otherwise: "")
        }
    }

    /// Fails if the server cannot be reached. A channel can be closed without the server, but a user at a terminal should not
    /// have to wait until the server is available.
    private func failWithoutServer() async throws -> Bool {
        while true {
            if let failure = client.lastFailure, !client.availability.service,
                failure.code == .serverUnreachable || failure.code == .serverUnavailable
            {
                throw CommandFault(
                    ExitStatus.unreachable,
                    "\(failure.message) The channel closes when this state directory is used again and the server is reachable."
                )
            }
            try await Task.sleep(for: .milliseconds(100))
        }
    }

    private func listen() async throws {
        switch (channel.state, closes) {
        case (.none, false), (.closed, false), (.error, false): try await channel.connect(encrypted: isEncrypted)
        case (.open, false):
            guard isEncrypted == (channel.subscription != nil) else {
                throw CommandFault(
                    ExitStatus.refused,
                    "the channel is open \(isEncrypted ? "without" : "with") keys; close it first with --close")
            }
            reportOpen()
        case (.none, true), (.closed, true), (.error, true):
            return printer.print(["event": "closed", "token": .text(channel.token ?? "")], otherwise: "closed")
        case (_, true): try await channel.disconnect()
        default: break
        }
        for try await event in channel.events {
            switch event {
            case .opened: reportOpen()
            case .message(let message): report(message)
            case .closed(let token):
                return printer.print(
                    ["event": "closed", "token": .text(token)], otherwise: "closed  \(token)")
            case .pingFailed(let failure):
                printer.print(
                    ["event": "pingFailed", "code": .number(Int64(failure.code))], otherwise: "ping failed  \(failure.code)")
            case .recovered:
                printer.print(["event": "recovered"], otherwise: "recovered")
            case .other(let other) where other.missedCount != nil:
                let count = other.missedCount ?? 0
                printer.print(["event": "missed", "count": .number(Int64(count))], otherwise: "missed  \(count) events")
            case .other(.moved): reportOpen()
            case .other(let other):
                var values: [String: OutputValue] = ["event": .text(other.description)]
                values["id"] = other.crashedMessage.map { .text($0) }
                printer.print(
                    values, otherwise: other.description + (other.crashedMessage.map { "  \($0)" } ?? ""))
            case .error(let code):
                printer.print(["event": "error", "code": .number(Int64(code))], otherwise: "error  \(code)")
                throw client.lastFailure.map(CommandFault.init)
                    ?? CommandFault(ExitStatus.refused, "the channel failed with code \(code)")
            }
        }
    }

    private func reportOpen() {
        let token = channel.token ?? ""
        let endpoint = channel.endpoint ?? ""
        var values: [String: OutputValue] = [
            "event": "opened", "token": .text(token), "host": .text(channel.host ?? ""), "endpoint": .text(endpoint),
        ]
        values["subscription"] = channel.subscription.map { subscription in
            .object([
                "endpoint": .text(subscription.endpoint),
                "keys": .object(["p256dh": .text(subscription.keys.p256dh), "auth": .text(subscription.keys.auth)]),
            ])
        }
        printer.print(values, otherwise: "opened  \(channel.subscription?.json ?? endpoint)")
    }

    private func report(_ message: PushMessage) {
        var values: [String: OutputValue] = ["event": "message", "id": .text(message.id)]
        if let text = message.text {
            values["body"] = .text(text)
        } else {
            values["bodyBase64"] = .text(Base64URL.encode(message.body))
        }
        values["encoding"] = message.contentEncoding.map(OutputValue.text)
        printer.print(
            values,
            otherwise: "message  \(message.id)  \(message.text ?? "\(message.body.count) bytes")")
    }
}
