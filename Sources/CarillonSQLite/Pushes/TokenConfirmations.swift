import CarillonCore
import Synchronization

/// The moments at which devices last confirmed their push tokens. The row of a device has this moment to the day.
///
/// Any thread uses it: a confirmation changes no row, so that no transaction takes it back.
final class TokenConfirmations: Sendable {
    private struct Confirmation {
        var addressRevision: Int64
        var at: Timestamp
    }

    private let known: Mutex<LRUCache<DeviceSerial, Confirmation>>

    init(capacity: Int = 50_000) { known = Mutex(LRUCache(capacity: capacity)) }

    /// Notes that the device of a registration confirms the address in it.
    func note(_ registration: DeviceRegistration, at now: Timestamp) {
        known.withLock { known in
            known[registration.device] = Confirmation(addressRevision: registration.addressRevision, at: now)
        }
    }

    /// Returns a registration with the last confirmation of its address.
    func applied(to registration: DeviceRegistration) -> DeviceRegistration {
        let known = known.withLock { $0[registration.device] }
        return registration.confirmed(known?.addressRevision == registration.addressRevision ? known?.at : nil)
    }
}
