package import CarillonWire

/// The approval hooks of apps: where an app's own server is asked. Methods that write are atomic and durable, as ``Store``
/// describes.
package protocol VetoStore: Sendable {
    /// Stores the approval hook of an app, and replaces the present one whole. The last of several calls at once counts.
    ///
    /// - Returns: False if there is no such app, or it was deleted.
    func putVeto(_ veto: StoredVeto) async throws -> Bool
    /// Removes the approval hook of an app. Returns false if there was none; of calls at once, one returns true.
    func removeVeto(of app: AppSerial) async throws -> Bool
    /// Returns all approval hooks, in any order, without those of deleted apps.
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
