import CarillonCore
import CarillonWire
import Logging

/// Does what clients ask for over the socket.
struct SocketRequests: Sendable {
    let devices: DeviceRegistrar
    let channels: ChannelRegistrar
    let addresses: Addresses
    let anonymousApp: AppID?
    let logger: Logger

    func perform(_ request: SessionMachine.Request, from address: NetworkAddress?) async -> SessionMachine.Answer {
        switch request {
        case .register(let owner, let id, let register): await self.register(id, register, owner, address)
        case .unregister(let owner, let id, let asWritten): await unregister(id, asWritten, owner)
        }
    }

    private func register(
        _ id: ChannelID, _ register: ClientFrame.Register, _ owner: SessionMachine.Owner, _ address: NetworkAddress?
    ) async -> SessionMachine.Answer {
        do {
            // What will be refused must not leave a device behind.
            let vapidKey = try register.key.map(ChannelRegistrar.parseVapidKey)
            try ChannelRegistrar.check(name: register.name)
            let wake = try register.wake.map(WakeMode.checked)
            let device = try await device(of: owner, from: address)
            let registration = try await channels.register(
                id, device: device, name: register.name, vapidKey: vapidKey, wake: wake, from: address)
            return .registered(
                asWritten: register.channelID, endpoint: addresses.endpoint(token: registration.token), device: device)
        } catch let refusal as Refusal {
            return .registrationRefused(asWritten: register.channelID, refusal.code)
        } catch {
            logger.error("channel registration failed", metadata: ["reason": "\(error)"])
            return .registrationRefused(asWritten: register.channelID, .storageUnavailable)
        }
    }

    private func unregister(
        _ id: ChannelID, _ asWritten: String, _ owner: SessionMachine.Owner
    ) async -> SessionMachine.Answer {
        guard case .device(let device) = owner else { return .unregistered(asWritten: asWritten) }
        do {
            _ = try await channels.unregister(id, device: device)
            return .unregistered(asWritten: asWritten)
        } catch {
            logger.error("channel closing failed", metadata: ["reason": "\(error)"])
            return .unregistrationFailed(asWritten: asWritten)
        }
    }

    /// A client without registration is stored with its first channel.
    private func device(of owner: SessionMachine.Owner, from address: NetworkAddress?) async throws -> DeviceSerial {
        switch owner {
        case .device(let device):
            return device
        case .provisional(let userAgent):
            guard let anonymousApp else { throw Refusal(.credentialMissing, "Register the device by HTTP first.") }
            if let known = try await devices.device(of: userAgent) { return known.serial }
            return try await devices.registerAnonymous(userAgent, app: anonymousApp, from: address).serial
        }
    }
}
