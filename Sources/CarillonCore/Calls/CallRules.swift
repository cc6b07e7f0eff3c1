package import CarillonWire

/// Which addresses the server may call on behalf of others.
package struct CallRules: Equatable, Sendable {
    /// Whether loopback, private and other networks that are not the Internet's may be called.
    package var allowsPrivate: Bool

    package init(allowsPrivate: Bool = false) { self.allowsPrivate = allowsPrivate }

    package func allows(_ address: NetworkAddress) -> Bool { allowsPrivate || address.isPublic }

    /// Those of the addresses that a name leads to that may be called: each is judged for itself, and one that may says
    /// nothing of the next.
    package func allowed(_ found: [NetworkAddress]) -> [NetworkAddress] { found.filter(allows) }

    /// Refuses what can be told before its name is resolved. A name that leads to a private network is found out when
    /// it is called.
    package func check(_ address: CallAddress) throws(Refusal) {
        let isAllowed =
            switch address.host {
            case .literal(let literal): allows(literal)
            case .name(let name): allowsPrivate || !(name == "localhost" || name.hasSuffix(".localhost"))
            }
        guard isAllowed else {
            throw Refusal(
                .watchAddressForbidden,
                "The address is in a private, local or reserved network, which this server does not call. The operator can allow it with \"allow-private-addresses\"."
            )
        }
    }
}
