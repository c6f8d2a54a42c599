/* Values of kith.h as objects of Foundation, and the reverse. */
#import <Foundation/Foundation.h>
#include <kith.h>

/** The object of a value, autoreleased; nil for NULL. Numbers and bools are NSNumber. */
id KithObject(const kith_value *value);

/** A value of an object, to be freed; NULL if a store cannot hold it, with the reason in `problem`, which
    never names a key or a value. */
kith_value *KithValue(id object, NSString **problem);

/** What typed getters return for an object. */
NSString *KithString(id object);
long long KithLongLong(id object);
double KithDouble(id object);
BOOL KithBool(id object);
