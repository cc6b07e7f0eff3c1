// Receives beside other services, until SIGTERM or Ctrl-C.

import CarillonClient
import Foundation
import Logging
import ServiceLifecycle
import UnixSignals

func say(_ line: String) {
    print(line)
    fflush(nil)
}

/// Prints what arrives on one channel. The loop ends when the group shuts this service down.
struct Reader: Service {
    let channel: PushChannel

    func run() async throws {
        for try await event in channel.events {
            switch event {
            case .opened: say("open at \(channel.endpoint ?? "")")
            case .message(let message): say(message.text ?? "\(message.body.count) bytes")
            default: say("\(event)")
            }
        }
        say("the reader is done")
    }
}

let environment = ProcessInfo.processInfo.environment

let client = try PushClient(
    configuration: .init(
        server: environment["CARILLON_SERVER"] ?? "http://127.0.0.1:8080",
        app: "com.example.app",
        clientKey: environment["CARILLON_KEY"],
        storageDirectory: environment["CARILLON_STATE"] ?? "/var/lib/example-app/push"
    )
)
let presence = try client.channel("com.example.app.presence")
if presence.state != .open && presence.state != .connecting { try await presence.connect() }

let group = ServiceGroup(
    services: [client, Reader(channel: presence)],
    gracefulShutdownSignals: [.sigterm, .sigint],
    logger: Logger(label: "com.example.app")
)
try await group.run()
