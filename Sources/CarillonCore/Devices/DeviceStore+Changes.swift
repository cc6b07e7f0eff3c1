package import CarillonWire

/// Decides on a request of a device, from the device's present registration.
package typealias RegistrationChange = (DeviceRegistration) throws(Refusal) -> RegistrationRequest

extension DeviceStore {
    /// Reads a registration, decides on the change, and writes the result. Decides again if the registration changed meanwhile.
    ///
    /// - Parameter change: Called with the present registration, outside of a transaction.
    /// - Returns: Nil if there is no such device. A refusal changes nothing.
    /// - Throws: ``StoreFault``, also if the registration changed each time.
    package func changeRegistration(
        of device: DeviceSerial, at now: Timestamp, _ change: RegistrationChange
    ) async throws -> Result<RegistrationRules.Decision, Refusal>? {
        guard var current = try await registration(of: device) else { return nil }
        for _ in 0..<RegistrationRules.mostDecisions {
            let request: RegistrationRequest
            do throws(Refusal) {
                request = try change(current)
            } catch {
                return .failure(error)
            }
            switch try await writeRegistration(request, decidedOn: current, at: now) {
            case .decided(let decision): return .success(decision)
            case .refused(let refusal): return .failure(refusal)
            case .outdated(let later): current = later
            case .deviceGone: return nil
            }
        }
        throw StoreFault(.unavailable, "a device's registration changes too often")
    }
}
