import Foundation
import NIOCore

extension SimulatorError {
    /// Describes why the simulator cannot listen on an address.
    init(_ error: any Error, listeningOn host: String, _ port: Int) {
        let why =
            switch (error as? IOError)?.errnoCode {
            case EADDRINUSE: "something listens there already; end it, or choose another port, or 0 for any that is free"
            case EADDRNOTAVAIL: "this machine has no such address"
            case EACCES, EPERM: "it needs more rights; ports from 1024 on do not"
            case nil: "there is no such name or address"
            default: "the address cannot be used"
            }
        let place = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        self.init(.addressUnavailable, "\(place) cannot be listened on: \(why).", cause: error)
    }
}
