import ArgumentParser
import CarillonBasics
import CarillonClient
import CarillonCore
import CarillonWire
import Foundation
import NIOHTTP1

struct SendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "send", abstract: "Send a message to a channel's endpoint.",
        discussion: """
            The text is sent without encryption, so the server could read it, unless you encrypt it for the Web Push \
            subscription of `carillon listen --encrypted`, an app or a browser. The endpoint is optional then: it is in the \
            file.

            Without a text, or with -, the message is read from standard input.
            """)

    @Argument(help: "The endpoint that the app received.") var endpoint: String?
    @Argument(help: "The message's text; - is standard input.") var text: String?
    @Option(
        name: .customLong("encrypt-for"),
        help:
            "Encrypt for the Web Push subscription in this file: {\"endpoint\": …, \"keys\": {\"p256dh\": …, \"auth\": …}}.")
    var subscriptionFile: String?
    @Option(help: "The encryption: aes128gcm (RFC 8291), or aesgcm for receivers that support only its draft.")
    var encoding: Encoding = .aes128gcm
    @Option(help: "Send the bytes of this file in place of a text; - is standard input.") var file: String?
    @Option(help: "How many seconds the message may wait for the device; with 0 it is delivered now or dropped.") var ttl:
        Int64 = 86_400
    @Option(help: "The collapse key: the message replaces a waiting message with the same key.") var topic: String?
    @Option(help: "very-low, low, normal or high.") var urgency: String?
    @Option(help: "Sign with this VAPID private key: PEM, or 32 bytes in base64url.") var vapid: String?
    @Option(name: .customLong("vapid-subject"), help: "A contact for the operator: a mailto: or https: address.")
    var vapidSubject: String?
    @Option(name: .customLong("idempotency-key"), help: "A key for retries: a second message with the same key is not sent.")
    var idempotencyKey: String?
    @OptionGroup var authority: AuthorityOption
    @Flag(help: "Wait for the outcome.") var wait = false
    @Flag(help: "Print one JSON object per line.") var json = false

    func validate() throws {
        guard address?.contains("://") ?? (subscriptionFile != nil) else {
            throw ValidationError("The endpoint must be a complete URL, such as http://….")
        }
        if let address { try Self.check(endpoint: address) }
        guard message == nil || file == nil else { throw ValidationError("Use either a TEXT or --file F.") }
        guard message != nil || file != nil || isatty(STDIN_FILENO) == 0 else {
            throw ValidationError("Use a TEXT or --file F, or send the message on standard input.")
        }
    }

    private static func check(endpoint: String) throws {
        do {
            _ = try CallAddress(reading: endpoint)
        } catch {
            throw ValidationError("The endpoint \(error.reason).")
        }
    }

    enum Encoding: String, ExpressibleByArgument, CaseIterable {
        case aes128gcm, aesgcm
    }

    /// With a Web Push subscription, a single argument is the text.
    private var isAddressLeftOut: Bool { subscriptionFile != nil && text == nil && file == nil }
    private var address: String? { isAddressLeftOut ? nil : endpoint }
    private var message: String? { isAddressLeftOut ? endpoint : text }

    enum Content: Equatable {
        case text(String)
        case file(String)
        /// - Parameter isNamed: Whether the user named standard input. Otherwise empty input is an error.
        case standardInput(isNamed: Bool)
    }

    var source: Content {
        switch (message, file) {
        case ("-", _), (_, "-"): .standardInput(isNamed: true)
        case (.some(let text), _): .text(text)
        case (nil, .some(let path)): .file(path)
        case (nil, nil): .standardInput(isNamed: false)
        }
    }

    func run() async throws {
        try await reportingFaults(
            interrupted: wait
                ? "interrupted; an accepted message stays accepted" : "interrupted; the message may have been accepted"
        ) {
            try await send()
        }
    }

    private func send() async throws {
        let client = APIClient(server: "", key: nil, authority: authority.file)
        let content = try content()
        let subscription = try subscription()
        guard let endpoint = address ?? subscription?.endpoint else {
            throw CommandFault(ExitStatus.noInput, "the subscription has no endpoint")
        }
        try Self.check(endpoint: endpoint)
        let encrypted = try subscription.map { try encrypt(content, for: $0) }
        let coding = encrypted?.coding ?? (content.isEmpty ? nil : ContentCoding(.identity))
        let answer = try client.accepted(
            try await client.send(
                .POST, endpoint, headers: try headers(coding, endpoint), body: encrypted?.body ?? content),
            as: { $0.isReceipt })
        let location = answer.headers.first(name: "location") ?? ""
        let id = location.split(separator: "/").last.map(String.init) ?? ""
        let standing = answer.headers.first(name: HeaderNames.outcome) ?? "waiting"
        let granted = answer.headers.first(name: "ttl") ?? ""
        Printer(isJSON: json).print(
            [
                "event": "accepted", "id": .text(id), "location": .text(location), "outcome": .text(standing),
                "ttl": .number(Int64(granted) ?? 0),
            ],
            otherwise: "accepted  \(standing)  ttl \(granted)  \(location)")
        guard wait else { return }
        switch standing {
        case "waiting", "offered": try await awaitOutcome(of: id, at: location, client)
        // The response contains the final outcome, so the message need not be stored for queries.
        default: try conclude(id, outcome: standing, code: nil)
        }
    }

    private func subscription() throws -> PushSubscription? {
        guard let subscriptionFile else { return nil }
        let text = try read(subscriptionFile)
        do {
            return try JSONDecoder().decode(PushSubscription.self, from: text)
        } catch is DecodingError {
            if let fault = CommandFault.numberOutOfRange(in: text, of: subscriptionFile, ExitStatus.noInput) { throw fault }
            throw CommandFault(
                ExitStatus.noInput,
                #"\#(subscriptionFile) is not a Web Push subscription, such as {"endpoint": …, "keys": {"p256dh": …, "auth": …}}"#
            )
        }
    }

    private func encrypt(_ content: [UInt8], for subscription: PushSubscription) throws -> EncryptedMessage {
        do {
            return try subscription.encrypt(content, with: encoding == .aesgcm ? .aesgcm : .aes128gcm)
        } catch is PushSubscription.KeysInvalid {
            throw CommandFault(
                ExitStatus.noInput,
                "the keys of the subscription are not valid: p256dh must be a P-256 point of 65 bytes, and auth must have 16 bytes, in base64url"
            )
        }
    }

    private func headers(_ coding: ContentCoding?, _ endpoint: String) throws -> [(String, String)] {
        var headers = [("ttl", String(ttl))]
        if let topic { headers.append(("topic", topic)) }
        if let urgency { headers.append(("urgency", urgency)) }
        if let idempotencyKey { headers.append(("idempotency-key", idempotencyKey)) }
        if let vapid {
            let signer = try VapidSigner(key: try InputFile.secret(vapid), subject: vapidSubject)
            headers.append(("authorization", try signer.authorization(forEndpoint: endpoint, at: Date())))
        }
        if let coding {
            headers.append(("content-encoding", coding.name.rawValue))
            if let encryption = coding.encryption { headers.append(("encryption", encryption)) }
            if let cryptoKey = coding.cryptoKey { headers.append(("crypto-key", cryptoKey)) }
        }
        return headers
    }

    private func content() throws -> [UInt8] {
        switch source {
        case .text(let text): return Array(text.utf8)
        case .file(let path): return Array(try read(path))
        case .standardInput(let isNamed):
            let content: Data
            do {
                content = try FileHandle.standardInput.readToEnd() ?? Data()
            } catch {
                throw CommandFault(ExitStatus.noInput, "standard input cannot be read")
            }
            guard isNamed || !content.isEmpty else {
                throw CommandFault(
                    .validationFailure,
                    "there is no text, and standard input is empty; use \"\" to send a message without a body")
            }
            return Array(content)
        }
    }

    private func read(_ path: String) throws -> Data {
        do {
            return try Data(contentsOf: URL(fileURLWithPath: path))
        } catch {
            throw CommandFault(ExitStatus.noInput, "\(PathPhrase.subject(path, "the file ")) cannot be read")
        }
    }

    private func awaitOutcome(of id: String, at location: String, _ client: APIClient) async throws {
        let limit = Date(timeIntervalSinceNow: Double(ttl) + 120)
        while Date() < limit {
            do {
                let message = try await client.call(.GET, location, as: MessageBody.self)
                if let outcome = message.outcome { return try conclude(id, outcome: outcome, code: message.code) }
            } catch let fault as CommandFault where fault.code == ExitStatus.tryAgain {
                // The message was accepted, so the outcome is requested again.
                try await Task.sleep(for: .seconds(1))
            }
            try await Task.sleep(for: .milliseconds(200))
        }
        throw CommandFault(ExitStatus.tryAgain, "the outcome did not arrive; the message can still be delivered")
    }

    private func conclude(_ id: String, outcome: String, code: Int?) throws {
        var values: [String: OutputValue] = ["event": "final", "id": .text(id), "outcome": .text(outcome)]
        values["code"] = code.map { .number(Int64($0)) }
        Printer(isJSON: json).print(values, otherwise: "final  \(outcome)\(code.map { "  code \($0)" } ?? "")")
        if outcome != "acknowledged" { throw ExitStatus.otherOutcome }
    }
}
