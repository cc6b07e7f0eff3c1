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
if presence.state == .none || presence.state == .closed || presence.state == .error {
    try await presence.connect()
}

events: for try await event in presence.events {
    switch event {
    case .opened(let token, let host):
        // Tell your backend where to send: this, or presence.endpoint.
        print("open at \(host), token \(token)")
    case .message(let message):
        // Asking for the next event says that this message was handled.
        print(message.text ?? "\(message.body.count) bytes")
    case .closed:
        break events
    case .error(let code):
        print("failed with code \(code): \(client.lastFailure?.message ?? "the server gave no reason")")
        break events
    case .pingFailed, .recovered:
        // Told only when your backend asked the server to look after it.
        break
    }
}

await client.stop()
