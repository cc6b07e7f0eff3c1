import CarillonWire

/// Keeps how the users of apps are told.
package protocol UserStore: Sendable {
    /// Sets the rules of an app, in place of those before. Answers false when there is no such app any more.
    func putUserRules(_ rules: StoredUserRules) async throws -> Bool
    func userRules(of app: AppSerial) async throws -> StoredUserRules?
    /// Answers false when there were none.
    func removeUserRules(of app: AppSerial) async throws -> Bool
    /// Channels that were opened for users to whom their devices belong no more, of one device when it is named.
    func channelsOfFormerUsers(of device: DeviceSerial?, limit: Int) async throws -> [PushChannel]
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
