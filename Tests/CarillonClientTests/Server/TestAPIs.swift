import CarillonWire
import Foundation
import Logging

@testable import CarillonClient

extension WebAnswer {
    init(status: Int, retryAfter: String? = nil, body: Data, contentType: String? = nil, server: String? = nil) {
        let fields = ["retry-after": retryAfter, "content-type": contentType, "carillon-server": server]
        self.init(status: status, headers: fields.compactMapValues(\.self), body: body)
    }
}

extension FileTransport {
    /// Sends a request as one without a file.
    func send(_ request: WebRequest) async throws(TransportFault) -> WebAnswer {
        let file = FileRequest(method: request.method.rawValue, address: request.address, bearer: request.bearer ?? "")
        do {
            return try await exchange(file, sent: { _ in }, received: { _, _ in })
        } catch {
            throw error as? TransportFault ?? TransportFault(.unreachable, error)
        }
    }
}

extension TransferAPI {
    init(
        base: String, transport: any FileTransport, backOff: PushClient.BackOff, logger: Logger,
        failures: FailureNote? = nil, bearer: @escaping @Sendable () -> String?,
        repeatsRegistration: @escaping @Sendable (_ credential: String) -> Bool = { _ in false }
    ) {
        let api = ServerAPI(
            base, over: transport, backOff: backOff, failures: failures ?? FailureNote(logger: logger),
            repeatsRegistration: repeatsRegistration)
        self.init(api: api, files: transport, bearer: bearer)
    }
}

extension ServiceAPI {
    init(
        base: String, transport: any ClientTransport, backOff: PushClient.BackOff, requester: SocketRequester,
        failures: FailureNote = FailureNote(), identity: @escaping @Sendable () -> DeviceIdentity?,
        repeatsRegistration: @escaping @Sendable (_ credential: String) -> Bool = { _ in false }
    ) {
        let api = ServerAPI(
            base, over: transport, backOff: backOff, failures: failures, repeatsRegistration: repeatsRegistration)
        self.init(api: api, requester: requester, identity: identity)
    }
}

extension ClientRegistrar {
    init(server: WebAddress, app: String, clientKey: String?, transport: any ClientTransport) {
        self.init(server: server, app: app, clientKey: clientKey, api: ServerAPI(server.text, over: transport))
    }
}

extension UpdatePoller {
    init(
        owner: UpdateOwner, credential: String, base: String, kinds: [String], inbox: UpdateInbox,
        transport: any ClientTransport, failures: FailureNote = FailureNote(),
        repeatsRegistration: @escaping @Sendable (_ credential: String) -> Bool = { _ in false }
    ) {
        let api = ServerAPI(base, over: transport, failures: failures, repeatsRegistration: repeatsRegistration)
        self.init(owner: owner, credential: credential, api: api, kinds: kinds, inbox: inbox)
    }
}
