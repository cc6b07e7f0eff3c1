import CarillonCore
import CarillonWire

/// Finds out who says hello.
struct SocketIdentifier: Sendable {
    struct Refused: Error {
        var code: CloseCode
        var reason: String
    }

    let devices: DeviceRegistrar
    let homes: Homes
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

    /// Finds the device, and makes the session its own.
    func identify(
        _ hello: ClientFrame.Hello, _ load: InboxLoad, as session: any LiveSession
    ) async -> Result<Identified, Refused> {
        do {
            if hello.credential != nil || hello.device != nil {
                return .success(try await registered(hello, load, session))
            }
            return .success(try await anonymous(hello, load, session))
        } catch let refusal as Refusal {
            return .failure(Refused(code: .unauthorized, reason: "\(refusal.code.rawValue): \(refusal.detail)"))
        } catch {
            return .failure(Refused(code: .internalError, reason: "storage_unavailable: come back later"))
        }
    }

    private func registered(
        _ hello: ClientFrame.Hello, _ load: InboxLoad, _ session: any LiveSession
    ) async throws -> Identified {
        let credential = try DeviceRegistrar.credential(hello.credential)
        guard hello.device == nil || hello.device == credential.device.description else {
            throw Refusal(.credentialInvalid, "the credential is of another device")
        }
        let hash = credential.hash
        let name = DeviceName.id(credential.device, credential: hash)
        let arrival = try await homes.arrival(of: name, as: session, load) { device in
            devices.admits(device, with: hash)
        }
        guard let arrival else { throw DeviceRegistrar.credentialInvalid }
        return Identified(arrival, uaid: credential.device.description)
    }

    /// As Mozilla's service does: a known user agent is itself, and any other gets a new name.
    private func anonymous(
        _ hello: ClientFrame.Hello, _ load: InboxLoad, _ session: any LiveSession
    ) async throws -> Identified {
        guard anonymousApp != nil else { throw Refusal(.credentialMissing, "register the device by HTTP first") }
        if let uaid = hello.uaid, let userAgent = UserAgentID(parsing: uaid),
            let arrival = try await homes.arrival(
                of: .credential(userAgent.hash), as: session, load,
                if: { device in
                    devices.saw(device)
                    return true
                })
        {
            return Identified(arrival, uaid: userAgent.text)
        }
        return Identified(identity: newcomer(), page: .unread)
    }
}

/// Who says hello, and what waits for it.
struct Identified: Sendable {
    let identity: SessionMachine.Identity
    /// Nil of one that was never here.
    let device: Device?
    let page: InboxPage
    /// What the server has of what the device said.
    let said: SaidRevisions

    fileprivate init(_ arrival: ArrivedDevice, uaid: String) {
        self.init(
            identity: .init(owner: .device(arrival.device.serial), uaid: uaid), device: arrival.device, page: arrival.page,
            said: arrival.said)
    }

    fileprivate init(
        identity: SessionMachine.Identity, device: Device? = nil, page: InboxPage, said: SaidRevisions = .none
    ) {
        self.identity = identity
        self.device = device
        self.page = page
        self.said = said
    }
}
