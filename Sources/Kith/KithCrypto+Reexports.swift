public import KithCrypto

/// A person's or file's passphrase, in guarded memory.
public typealias Passphrase = KithCrypto.Passphrase
