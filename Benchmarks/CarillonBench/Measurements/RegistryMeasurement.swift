import Foundation
import NIOCore

/// Measures many devices with push tokens: the rate of registrations, and the cost of the devices.
struct RegistryMeasurement: Sendable {
    let scale: Scale
    let setup: CarillonSetup

    private static let data = "registry"

    struct Result: Sendable {
        /// Registrations per second among few devices, and among many.
        var amongFew: Double
        var amongMany: Double
        /// Devices per second that report unchanged data.
        var unchanged: Double
        var bytesEach: Double
        /// Seconds until the server is ready.
        var start: Double
    }

    func measure() async throws -> Result {
        defer { setup.scratch.remove(Self.data) }
        let (server, key) = try await setup.startEmpty(data: Self.data)
        var running = server
        do {
            let registrar = DeviceRegistrar(
                address: server.address, key: key, app: CarillonSetup.app, withPushTokens: true, withChannels: false)
            var devices: [Device] = []
            func register(_ count: Int) async throws -> Double {
                let start = nanoseconds()
                devices += try await registrar.register(count, from: devices.count)
                return Double(count) / (Double(nanoseconds() - start) / 1e9)
            }
            _ = try await register(1000)
            let few = try await register(scale.registryProbe)
            _ = try await register(scale.registryDevices - devices.count)
            let many = try await register(scale.registryProbe)
            let began = nanoseconds()
            try await registrar.repeatTokens(scale.registryProbe, of: devices)
            let unchanged = Double(scale.registryProbe) / (Double(nanoseconds() - began) / 1e9)
            await server.process.stop()
            let bytes = try setup.scratch.bytes(in: Self.data)
            let start = nanoseconds()
            running = try setup.launch(data: Self.data, devices: [])
            try await setup.waitUntilReady(running)
            let ready = Double(nanoseconds() - start) / 1e9
            await running.process.stop()
            return Result(
                amongFew: few, amongMany: many, unchanged: unchanged, bytesEach: Double(bytes) / Double(devices.count),
                start: ready)
        } catch {
            await running.process.stop()
            throw error
        }
    }
}
