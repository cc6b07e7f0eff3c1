import CarillonBasics
import CarillonClient
import CarillonCore
import CarillonServer
import CarillonWire
import Crypto
import Foundation

/// The scenario of services between apps: one app of the user Ada sends a file to another one, sealed from device to device, and
/// receives a reply.
struct DemoServices {
    let server: String
    let domain: HomeDomain
    let app: AppID
    let key: String
    /// The storage directory of the two apps during the scenario.
    let directory: String
    let say: @Sendable (String) -> Void

    private static let files = "com.example.demo.files"
    private static let transfer = ServiceDefinition.transferFile
    private static let secret = Hexadecimal.encode((0..<32).map { _ in UInt8.random(in: 0...255) })

    func notify() async throws {
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let provider = try await client(try AppID.checked(Self.files), "files")
        let consumer = try await client(app, "mail")
        say(
            "Ada has two apps in one realm, which share their users: one for mail, and one for files, which offers a service."
        )
        guard let method = Self.transfer.allMethods.first else { return }
        await provider.serviceProvider.handle(method) { [say] request in
            let name = request.attachments.first.map { URL(filePath: $0).lastPathComponent } ?? ""
            say("  received      the app for files has the complete file \(name) on its own disk")
            return ServiceReply()
        }
        let providers = consumer.serviceClient.providerChanges
        try await provider.serviceProvider.offer(name: "Files", version: "1.0", [Self.transfer])
        for await found in providers {
            guard let files = found.first(where: { $0.application.app == Self.files }) else { continue }
            say("  found         \(files.name) \(files.version), whose identity is \(files.fingerprint.prefix(19))…")
            try await send(by: consumer, to: files.application, method)
            break
        }
        await consumer.stop()
        await provider.stop()
    }

    private func send(
        by consumer: PushClient, to application: ServiceApplication, _ method: ServiceMethod
    ) async throws {
        let path = directory + "/report.pdf"
        try Data("The figures of the third quarter".utf8).write(to: URL(filePath: path))
        let begun = ContinuousClock.now
        _ = try await consumer.serviceClient.call(method, of: application, attachments: [path])
        let milliseconds = (ContinuousClock.now - begun) / Duration.milliseconds(1)
        say(
            "  answered      after \(Int(milliseconds.rounded())) ms; the server saw the devices and the name of the service, but none of the content"
        )
    }

    /// Starts an app of the user Ada.
    private func client(_ app: AppID, _ name: String) async throws -> PushClient {
        if try await domain.apps.serial(of: app) == nil { _ = try await domain.apps.create(app) }
        let rules: JSONValue = ["secrets": .array([.string(Self.secret)])]
        _ = try await domain.users.set(rules, of: app)
        try await domain.services.setRealm("demo", of: try await domain.serial(ofApp: app.text))
        let key =
            app == self.app
            ? self.key : try await domain.keys.createKey(role: .client, app: app, name: "demo").secret.text
        let client = try PushClient(
            configuration: .init(
                server: server, app: app.text, clientKey: key, storageDirectory: "\(directory)/\(name)"))
        try await client.device.setUser(Self.token(of: "ada", for: app))
        try client.start()
        return client
    }

    /// Returns a token that the app's backend would sign (RFC 7519).
    private static func token(of user: String, for app: AppID) -> String {
        let expiry = Int(Date().timeIntervalSince1970) + 600
        let parts = [#"{"alg":"HS256"}"#, #"{"sub":"\#(user)","aud":"\#(app)","exp":\#(expiry)}"#]
        let text = parts.map { Base64URL.encode(Array($0.utf8)) }.joined(separator: ".")
        let signature = HMAC<SHA256>.authenticationCode(for: Data(text.utf8), using: SymmetricKey(data: Data(secret.utf8)))
        return text + "." + Base64URL.encode(Array(signature))
    }
}
