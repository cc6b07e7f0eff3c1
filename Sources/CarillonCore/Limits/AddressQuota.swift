/// The limit on the number of anonymous devices of an address.
package struct AddressQuota: Sendable {
    package var address: NetworkAddress
    package var limit: Int

    package init(address: NetworkAddress, limit: Int) {
        self.address = address
        self.limit = limit
    }
}
