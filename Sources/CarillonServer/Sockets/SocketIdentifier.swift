import CarillonCore
import CarillonWire
import Logging

/// Identifies the client that sent a hello.
struct SocketIdentifier: Sendable {
    struct Refused: Error {
        var code: CloseCode
        var reason: String
    }

    let homes: Homes
    /// The app of devices without registration; nil refuses them.
    let anonymousApp: AppID?
    /// Receives a message for each connection that cannot use the home of its device.
    let logger: Logger

    /// Returns the identity of a new client, which needs no look-up; nil for any other client.
    func identifyNewcomer(_ hello: ClientFrame.Hello) -> SessionMachine.Identity? {
        guard anonymousApp != nil, hello.credential == nil, hello.device == nil, hello.uaid == nil else { return nil }
        return newcomer()
    }

    private func newcomer() -> SessionMachine.Identity {
        let userAgent = UserAgentID(random: .system)
        return .init(owner: .provisional(userAgent), uaid: userAgent.text)
    }

    /// Finds the device, and connects the session to it.
    func identify(
        _ hello: ClientFrame.Hello, _ load: PageRequest, as session: any LiveSession
    ) async -> Result<Identified, Refused> {
        do {
            if hello.credential != nil || hello.device != nil {
                return .success(try await registered(hello, load, session))
            }
            return .success(try await anonymous(hello, load, session))
        } catch let refusal as Refusal {
            return .failure(Refused(code: .unauthorized, reason: "\(refusal.code.rawValue): \(refusal.detail)"))
        } catch {
            return .failure(Refused(code: .internalError, reason: "storage_unavailable: connect again later"))
        }
    }

    private func registered(
        _ hello: ClientFrame.Hello, _ load: PageRequest, _ session: any LiveSession
    ) async throws -> Identified {
        let credential = try DeviceRegistrar.credential(hello.credential)
        guard hello.device == nil || hello.device == credential.device.description else {
            throw Refusal(.credentialInvalid, "the credential belongs to another device")
        }
        let hash = credential.hash
        let name = DeviceName.id(credential.device, credential: hash)
        switch await arrive(name, .credential(hash), load, speaking: hello.carillon ?? 0, as: session) {
        case .device(let arrived): return Identified(arrived, uaid: credential.device.description)
        case .unknownDevice: throw DeviceRegistrar.credentialInvalid
        case .failed(let fault): throw fault
        }
    }

    /// As in Mozilla's service, a known user agent keeps its identity, and any other client receives a new identifier.
    private func anonymous(
        _ hello: ClientFrame.Hello, _ load: PageRequest, _ session: any LiveSession
    ) async throws -> Identified {
        guard anonymousApp != nil else { throw Refusal(.credentialMissing, "register the device by HTTP first") }
        if let uaid = hello.uaid, let userAgent = UserAgentID(parsing: uaid) {
            switch await arrive(userAgent, load, speaking: hello.carillon ?? 0, as: session) {
            case .device(let arrived): return Identified(arrived, uaid: userAgent.text)
            case .unknownDevice: break
            case .failed(let fault): throw fault
            }
        }
        return Identified(identity: newcomer(), page: .unread)
    }

    /// Connects a device without registration.
    func arrive(
        _ userAgent: UserAgentID, _ load: PageRequest, speaking version: Int, as session: any LiveSession
    ) async -> Arrived {
        let hash = userAgent.hash
        return await arrive(.credential(hash), .userAgent(hash), load, speaking: version, as: session)
    }

    /// Connects a device. Returns a fault of its home as a fault of the store, because both end the connection.
    private func arrive(
        _ name: DeviceName, _ proof: DeviceProof, _ load: PageRequest, speaking version: Int, as session: any LiveSession
    ) async -> Arrived {
        do throws(HomeFault) {
            return try await homes.arrive(name, proof, load, speaking: version, as: session)
        } catch {
            return .failed(StoreFault(error, logger: logger))
        }
    }
}

/// The identity of a client, and its waiting envelopes.
struct Identified: Sendable {
    let identity: SessionMachine.Identity
    let page: InboxPage
    /// The revisions of the device's description and offers that the server has.
    let reported: ReportedRevisions

    fileprivate init(_ arrived: ArrivedDevice, uaid: String) {
        self.init(
            identity: .init(owner: .device(arrived.device.serial), uaid: uaid), page: arrived.page,
            reported: arrived.reported)
    }

    fileprivate init(identity: SessionMachine.Identity, page: InboxPage, reported: ReportedRevisions = .none) {
        self.identity = identity
        self.page = page
        self.reported = reported
    }
}
