import CarillonWire

/// How apps prove who their users are, and what is left of former users. Methods that write are atomic and durable, as ``Store``
/// describes.
package protocol UserStore: Sendable {
    /// Stores the rules of an app, and replaces the present ones whole. The last of several calls at once counts.
    ///
    /// - Returns: False if there is no such app, or it was deleted.
    func putUserRules(_ rules: StoredUserRules) async throws -> Bool
    /// Returns the rules of an app; nil if there are none.
    func userRules(of app: AppSerial) async throws -> StoredUserRules?
    /// Removes the rules of an app. Returns false if there were none; of calls at once, one returns true.
    func removeUserRules(of app: AppSerial) async throws -> Bool
    /// Returns channels whose device has another user than the one that they were opened for, in the order of their serial numbers. The
    /// change of the user ends them in its own transaction: ``ChannelStore`` does not return them any more.
    ///
    /// - Parameter device: Nil for the channels of all devices.
    func channelsOfFormerUsers(of device: DeviceSerial?, in shards: ShardSet, limit: Int) async throws -> [PushChannel]
}

package struct StoredUserRules: Equatable, Sendable {
    package var app: AppSerial
    /// Other bytes each time that they are set, also of the same rules.
    package var sealed: [UInt8]
    package var setAt: Timestamp

    package init(app: AppSerial, sealed: [UInt8], setAt: Timestamp) {
        self.app = app
        self.sealed = sealed
        self.setAt = setAt
    }
}
