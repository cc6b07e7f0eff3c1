package import CarillonWire

/// Keeps which apps are to be asked, and where.
package protocol VetoStore: Sendable {
    /// Sets where an app is asked, in place of where it was. Answers false when there is no such app any more.
    func putVeto(_ veto: StoredVeto) async throws -> Bool
    /// Answers false when there was none.
    func removeVeto(of app: AppSerial) async throws -> Bool
    func vetoes() async throws -> [(app: AppID, veto: StoredVeto)]
}

package struct StoredVeto: Equatable, Sendable {
    package var app: AppSerial
    package var address: String
    /// The secret with which questions are signed.
    package var sealed: [UInt8]
    package var setAt: Timestamp

    package init(app: AppSerial, address: String, sealed: [UInt8], setAt: Timestamp) {
        self.app = app
        self.address = address
        self.sealed = sealed
        self.setAt = setAt
    }
}
