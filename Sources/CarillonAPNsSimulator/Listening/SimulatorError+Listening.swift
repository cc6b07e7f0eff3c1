import Foundation
import NIOCore

extension SimulatorError {
    /// Describes why the simulator cannot listen on an address.
    init(_ error: any Error, listeningOn host: String, _ port: Int) {
        let why =
            switch (error as? IOError)?.errnoCode {
            case EADDRINUSE: "another process listens there; end it, choose another port, or use port 0 for any free port"
            case EADDRNOTAVAIL: "this machine has no such address"
            case EACCES, EPERM: "permission denied; choose a port from 1024"
            case nil: "the name or address does not exist"
            default: "the address cannot be used"
            }
        let place = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        self.init(.addressUnavailable, "\(place) cannot be listened on: \(why).", cause: error)
    }
}
