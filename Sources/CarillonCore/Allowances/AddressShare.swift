/// The share of an address in anonymous devices: how many it may have.
package struct AddressShare: Sendable {
    package var address: NetworkAddress
    package var limit: Int

    package init(address: NetworkAddress, limit: Int) {
        self.address = address
        self.limit = limit
    }
}
