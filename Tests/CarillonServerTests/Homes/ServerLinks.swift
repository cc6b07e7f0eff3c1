import CarillonCore
import CarillonServer
import Synchronization

/// The links of a server, in the order of its homes.
final class ServerLinks: Sendable {
    private let links = Mutex<[LinkedHome]>([])

    var all: [LinkedHome] { links.withLock { $0 } }

    func add(_ link: LinkedHome) -> any Home {
        links.withLock { $0.append(link) }
        return link
    }
}
