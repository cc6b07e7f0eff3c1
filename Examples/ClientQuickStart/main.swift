// Opens a channel, prints what arrives on it, and ends when the channel does.

import CarillonClient

let client = try PushClient(
    configuration: PushClient.Configuration(
        server: "http://127.0.0.1:8080",
        app: "com.example.app",
        clientKey: "the key that `carillon keys create` printed",
        storageDirectory: "/var/lib/example-app/push"
    )
)
try client.start()

let presence = try client.channel("com.example.app.presence")
do {
    let address = try await presence.ensureOpen(within: .seconds(30))
    // Tell your backend where to send: this, or address.endpoint.
    print("open at \(address.host), token \(address.token)")
} catch {
    // The client tries again and again: the channel opens when the server can be reached.
    print("not open: \(client.lastFailure?.message ?? error.message)")
}

events: for try await event in presence.events {
    switch event {
    case .opened, .pingFailed, .recovered, .other:
        // The last three are told only when your backend asked the server to look after it, or the server moves.
        break
    case .message(let message):
        // Asking for the next event says that this message was handled.
        print(message.text ?? "\(message.body.count) bytes")
    case .closed:
        break events
    case .error(let code):
        print("failed with code \(code): \(client.lastFailure?.message ?? "the server gave no reason")")
        break events
    }
}

await client.stop()
