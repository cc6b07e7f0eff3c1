package import CarillonWire

/// Decides which addresses the server may call.
package struct CallRules: Equatable, Sendable {
    /// Whether addresses outside the public Internet, such as loopback and private addresses, may be called.
    package var allowsPrivate: Bool

    package init(allowsPrivate: Bool = false) { self.allowsPrivate = allowsPrivate }

    package func allows(_ address: NetworkAddress) -> Bool { allowsPrivate || address.isPublic }

    /// Returns the resolved addresses of a name that may be called. Each address is checked separately.
    package func allowed(_ found: [NetworkAddress]) -> [NetworkAddress] { found.filter(allows) }

    /// Refuses addresses that are not allowed, as far as this is known before the name is resolved. A name that resolves to a
    /// private network is refused when it is called.
    package func check(_ address: CallAddress) throws(Refusal) {
        let isAllowed =
            switch address.host {
            case .literal(let literal): allows(literal)
            case .name(let name): allowsPrivate || !(name == "localhost" || name.hasSuffix(".localhost"))
            }
        guard isAllowed else {
            throw Refusal(
                .watchAddressForbidden,
                "The address lies in a private, local or reserved network, which this server's operator does not allow.")
        }
    }
}
