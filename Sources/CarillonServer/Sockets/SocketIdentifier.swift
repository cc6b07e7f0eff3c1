import CarillonCore
import CarillonWire

/// Finds out who says hello.
struct SocketIdentifier: Sendable {
    struct Refused: Error {
        var code: CloseCode
        var reason: String
    }

    let devices: DeviceRegistrar
    /// The app of devices that never registered; nil refuses them.
    let anonymousApp: AppID?

    /// The answer to a client that never was here, for which nothing need be looked up; nil for any other.
    func identifyNewcomer(_ hello: ClientFrame.Hello) -> SessionMachine.Identity? {
        guard anonymousApp != nil, hello.credential == nil, hello.device == nil, hello.uaid == nil else { return nil }
        return newcomer()
    }

    private func newcomer() -> SessionMachine.Identity {
        let userAgent = devices.newUserAgentID()
        return .init(owner: .provisional(userAgent), uaid: userAgent.text)
    }

    func identify(_ hello: ClientFrame.Hello) async -> Result<SessionMachine.Identity, Refused> {
        do {
            if hello.credential != nil || hello.device != nil { return try await registered(hello) }
            return try await anonymous(hello)
        } catch let refusal as Refusal {
            return .failure(Refused(code: .unauthorized, reason: "\(refusal.code.rawValue): \(refusal.detail)"))
        } catch {
            return .failure(Refused(code: .internalError, reason: "storage_unavailable: come back later"))
        }
    }

    private func registered(_ hello: ClientFrame.Hello) async throws -> Result<SessionMachine.Identity, Refused> {
        let device = try await devices.authenticate(bearer: hello.credential)
        guard hello.device == nil || hello.device == device.id.description else {
            return .failure(
                Refused(code: .unauthorized, reason: "credential_invalid: the credential is of another device"))
        }
        return .success(.init(owner: .device(device.serial), uaid: device.id.description))
    }

    /// As Mozilla's service does: a known user agent is itself, and any other gets a new name.
    private func anonymous(_ hello: ClientFrame.Hello) async throws -> Result<SessionMachine.Identity, Refused> {
        guard anonymousApp != nil else {
            return .failure(
                Refused(code: .unauthorized, reason: "credential_missing: register the device by HTTP first"))
        }
        if let uaid = hello.uaid, let userAgent = UserAgentID(parsing: uaid),
            let device = try await devices.device(of: userAgent)
        {
            devices.saw(device)
            return .success(.init(owner: .device(device.serial), uaid: userAgent.text))
        }
        return .success(newcomer())
    }
}
